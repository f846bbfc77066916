// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestUnpacked(t *testing.T) {
	file := func(i int) (string, []byte) { return fmt.Sprintf("f%d", i), bytes.Repeat([]byte{byte('a' + i)}, 100) }
	archive, err := packed(3, file)
	if err != nil {
		t.Fatal(err)
	}
	if err := unpacked(bytes.NewReader(archive), 3, file); err != nil {
		t.Errorf("what was packed: %v", err)
	}
	if err := unpacked(bytes.NewReader(archive), 4, file); err == nil || !strings.Contains(err.Error(), "1 did not come back") {
		t.Errorf("with a file missing: got %v", err)
	}
	if err := unpacked(bytes.NewReader(archive), 2, file); err == nil || !strings.Contains(err.Error(), `"f2"`) {
		t.Errorf("with a file too many: got %v", err)
	}
	spoilt := bytes.Replace(archive, []byte("bbbb"), []byte("bxbb"), 1)
	if err := unpacked(bytes.NewReader(spoilt), 3, file); err == nil || !strings.Contains(err.Error(), "other bytes") {
		t.Errorf("with a byte changed: got %v", err)
	}
}

func TestSpeed(t *testing.T) {
	if got := speed(64_000_000, &Figures{P50: 250}); got == nil || *got != 256 {
		t.Errorf("64 MB in 250 ms: got %v, want 256 MB/s", got)
	}
	if got := speed(1, nil); got != nil {
		t.Errorf("of nothing: got %v, want nil", *got)
	}
}
