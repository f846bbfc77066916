// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// A sandbox's disk limit bounds what its output takes of the store, too, whether its
// processes have ended or not.
func TestOutputThatIsKeptHasABudget(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	d := open(t, t.TempDir(), "")
	t.Cleanup(func() { _ = d.Close() })
	limits := sandbox.Limits{CPU: 2, MemoryMB: 128, DiskMB: 64, Pids: 64}
	i, err := d.Create(t.Context(), runtime.Spec{ID: sandbox.NewID(), Image: runtime.Image{Root: root}, Hostname: "box", Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	client := agent.NewClient(i.Dial)
	write := func(processes int) {
		t.Helper()
		for range processes {
			p, err := client.Start(t.Context(), agent.Command{
				ID: sandbox.NewProcessID(), Shell: "head -c 60000000 /dev/urandom; echo written >&2; exec sleep 1000", MaxStdout: agent.MaxOutput,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for {
				f, err := p.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if f.Stream == sandbox.Stderr {
					break
				}
			}
		}
	}
	within := func(limits sandbox.Limits) {
		t.Helper()
		logs, err := i.(runtime.LogKeeper).Logs()
		if err != nil {
			t.Fatal(err)
		}
		defer logs.Close()
		if used := usedBelow(t, logs); used > limits.LogBytes() || used < limits.LogBytes()/8 {
			t.Errorf("what is kept of 60 MB of output of each process takes %d bytes, with a budget of %d", used, limits.LogBytes())
		}
	}
	write(4)
	within(limits)
	limits.DiskMB = 256
	if err := i.(runtime.Resizer).Resize(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
	write(2)
	within(limits)
	p, err := client.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "head -c 1000000 /dev/zero"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	got := 0
	for err == nil {
		var f sandbox.Frame
		f, err = p.Next(t.Context())
		got += len(f.Data)
	}
	if err != io.EOF || got != 1_000_000 {
		t.Errorf("beside them a command's output has %d bytes: %v", got, err)
	}
}

// usedBelow is what the files of a directory take of the disk.
func usedBelow(t *testing.T, dir *os.File) (used int64) {
	t.Helper()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", name, err))
		}
		used += st.Blocks * 512
	}
	return used
}
