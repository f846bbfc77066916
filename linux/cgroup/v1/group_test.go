// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/linux/cgroup/cgroupfs"
)

func TestAThreadJoinsAndItsProcessDoesNot(t *testing.T) {
	tree := openHost(t)
	const id = "abcd"
	if err := tree.Make(id, Limits{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Remove(context.Background(), id); err != nil {
			t.Error(err)
		}
	})
	files, err := tree.JoinFiles(id)
	if err != nil {
		t.Fatal(err)
	}
	before := v1Paths(t, "/proc/self/cgroup")
	onThread(func() {
		for _, f := range files {
			if _, err := f.WriteString("0"); err != nil {
				t.Error(err)
				return
			}
			_ = f.Close()
		}
		group := "/" + cgroupfs.Top + "/" + tree.namespace + "/" + id
		want := map[string]string{"cpu": group, "memory": group, "pids": group}
		thread := fmt.Sprintf("/proc/self/task/%d/cgroup", unix.Gettid())
		if diff := cmp.Diff(v1Paths(t, thread), want); diff != "" {
			t.Errorf("the thread (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(v1Paths(t, "/proc/self/cgroup"), before); diff != "" {
			t.Errorf("the process (-got +want):\n%s", diff)
		}
		cmd := exec.Command("/bin/cat", "/proc/self/cgroup")
		out, err := cmd.Output()
		if err != nil {
			t.Error(err)
			return
		}
		path := filepath.Join(t.TempDir(), "cgroup")
		if err := os.WriteFile(path, out, 0o600); err != nil {
			t.Error(err)
			return
		}
		if diff := cmp.Diff(v1Paths(t, path), want); diff != "" {
			t.Errorf("its child (-got +want):\n%s", diff)
		}
	})
}
