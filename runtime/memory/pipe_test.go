// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// An agent that does not want a file says so while the file is still being sent:
// neither may wait for the other to read.
func TestAnUploadThatIsRefusedIsAnswered(t *testing.T) {
	i := create(t, host(t, t.TempDir()).Driver())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, size := range []int{0, 1, 100 << 10, 4 << 20} {
		_, _, err := agent.NewClient(i.Dial).WriteFile(ctx, "/workspace/no/such/directory/file",
			strings.NewReader(strings.Repeat("x", size)), sandbox.WriteFileOptions{})
		if fault.Of(err) != fault.NotFound {
			t.Fatalf("of %d bytes: got %v, want not_found", size, err)
		}
	}
	if got := output(t, i, "echo still there"); got != "still there\n" {
		t.Errorf("after it: %q", got)
	}
}
