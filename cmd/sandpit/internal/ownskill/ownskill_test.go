// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ownskill

import (
	"os"
	"path/filepath"
	"testing"

	"sandpit.dev/fault"
)

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	path, err := Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, exec := range map[string]bool{"SKILL.md": false, "scripts/healthcheck.sh": true, "scripts/run_in_sandbox.sh": true, "scripts/clone_and_test.sh": true} {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil || info.Size() == 0 || (info.Mode()&0o100 != 0) != exec {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if _, err := Write(dir); fault.Of(err) != fault.Exists {
		t.Errorf("over what is there: %v", err)
	}
	link := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(link, Name)); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(link); fault.Of(err) != fault.Exists {
		t.Errorf("through a link: %v", err)
	}
}
