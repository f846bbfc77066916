// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/skiptest"
)

// TestCommandsWithFewOpenFiles runs a command on servers whose hard limit of open files is lower
// than what a command may have, and the lowest with which a server starts.
func TestCommandsWithFewOpenFiles(t *testing.T) {
	for _, limit := range []int{512, 1024} {
		t.Run(strconv.Itoa(limit), func(t *testing.T) {
			skiptest.WithoutRoot(t, "the native runtime does")
			dir := t.TempDir()
			h := hostIn(t, dir, "127.0.0.1:0")
			h.build = func() (string, error) {
				path, err := program()
				if err != nil {
					return "", err
				}
				limited := filepath.Join(dir, "limited")
				return limited, os.WriteFile(limited, fmt.Appendf(nil, "#!/bin/sh\nulimit -n %d\nexec %s \"$@\"\n", limit, path), 0o700)
			}
			t.Cleanup(h.sweep)
			h.start()
			box, _, err := h.client.Create(t.Context(), v1.CreateSandbox{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := h.client.Exec(t.Context(), box.ID, v1.Exec{Command: new("ulimit -Hn")})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(r.Stdout); got != strconv.Itoa(limit) {
				t.Errorf("a command may have %s files open, of %d", got, limit)
			}
		})
	}
}
