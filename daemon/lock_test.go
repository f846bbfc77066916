// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A child of a server that was killed holds the server's lock until it runs its own program, which may
// take longer than a server that runs is waited for.
func TestTheLockOfADeadServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := flock(f); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(f, dead.Process.Pid); err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", fmt.Sprint(lockPatience.Seconds()+1))
	child.ExtraFiles = []*os.File{f}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	next, err := lockData(dir)
	if err != nil {
		t.Fatalf("the lock that a child of a dead server holds: %v", err)
	}
	_ = next.Close()
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}
