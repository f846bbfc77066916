// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"os"
	"path/filepath"
	"testing"

	"sandpit.dev/internal/skiptest"
)

// Programs of another release are where the host's are, for one thread and what it starts; what it lacks is the host's.
func TestCover(t *testing.T) {
	skiptest.WithoutRoot(t, "it mounts")
	k := Kit{root: t.TempDir(), whole: true}
	if err := os.MkdirAll(filepath.Join(k.root, "usr", "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(k.root, "usr", "bin", "sandpit-suite"), []byte("#!/bin/sh\necho of the suite\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := k.Path("sandpit-suite"); got != "/usr/bin/sandpit-suite" {
		t.Errorf("it is named %s", got)
	}
	if got := k.Path("sh"); got != "sh" {
		t.Errorf("what it lacks is named %s", got)
	}
	p, err := NewPrivate()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	err = p.Do(func() error {
		if err := k.Cover(); err != nil {
			return err
		}
		cmd := k.Command(t.Context(), "sh", "-c", `"$0"`, k.Path("sandpit-suite"))
		out, err := cmd.CombinedOutput()
		if string(out) != "of the suite\n" {
			t.Errorf("it said %q: %v", out, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat("/usr/bin/sandpit-suite"); !os.IsNotExist(err) {
		t.Errorf("the host has it, too: %v", err)
	}
	if err := (Kit{}).Cover(); err != nil {
		t.Errorf("what is installed covers nothing: %v", err)
	}
}
