// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/leaktest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// lifeCrash marks the points of a sandbox's life, which crashInLife goes through.
const lifeCrash = "life:"

// crashInLife takes a sandbox through all that can be done to it, and is killed on the
// way. The file /workspace/n holds 1 until its disk is kept, and 2 and 3 afterwards.
func crashInLife(d *native.Driver, point, root string) error {
	ctx := context.Background()
	made, err := d.Create(ctx, crashSpec(root))
	if err != nil {
		return err
	}
	i := made.(*native.Instance)
	run := func(line string) error {
		p, err := agent.NewClient(i.Dial).Start(ctx, agent.Command{ID: sandbox.NewProcessID(), Shell: line})
		if err != nil {
			return err
		}
		defer func() { _ = p.Close() }()
		_, err = agent.NewClient(i.Dial).Wait(ctx, p.ID())
		return err
	}
	kept := sandbox.NewID()
	fork := func() error {
		spec := crashSpec(root)
		_, err := d.Fork(ctx, i.Handle().ID, spec, func() {})
		return err
	}
	steps := []func() error{
		func() error { return run("echo 1 > /workspace/n") },
		func() error {
			return run("(while :; do date +%N > /workspace/now; sleep 0.01; done) >/dev/null 2>&1 &")
		},
		func() error { return i.Pause(ctx) },
		func() error { return i.Resume(ctx) },
		func() error { return i.Resize(ctx, sandbox.Limits{CPU: 0.5, MemoryMB: 128, DiskMB: 128, Pids: 32}) },
		func() error { // of one that is killed at that, as one that was made would be left
			if !strings.HasPrefix(point, "fork.") {
				return nil
			}
			return fork()
		},
		func() error { _, err := d.Snapshot(ctx, i.Handle().ID, kept); return err },
		func() error { return run("echo 2 > /workspace/n") },
		func() error { return i.Stop(ctx, 0) },
		func() error { return d.Rollback(ctx, i.Handle().ID, kept, crashSpec(root).Limits) },
		func() error { return i.Start(ctx, crashSpec(root)) },
		func() error { return run("echo 3 > /workspace/n") },
		func() error { return i.Restore(ctx, crashSpec(root), kept) },
	}
	for n, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", n, err)
		}
	}
	return nil
}

func TestAServerThatIsKilledInASandboxesLifeLeavesItWhole(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	program, err := agentProgram()
	if err != nil {
		t.Fatalf("build the agent: %v", err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(path, program, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		point        string
		paused, down bool
		either       bool // it may be down or not
		snapshots    int
		halves       int    // what else is left, to be removed
		holds        string // what /workspace/n may hold then
	}{
		{point: "pause.suspended", holds: "1"},
		{point: "pause.frozen", holds: "1"},
		{point: "pause.marked", holds: "1", paused: true},
		{point: "resume.unmarked", holds: "1"},
		{point: "resume.thawed", holds: "1"},
		{point: "resize.groups", holds: "1"},
		{point: "fork.copied", holds: "1", halves: 1},
		{point: "snapshot.synced", holds: "1"},
		{point: "snapshot.frozen", holds: "1"},
		{point: "snapshot.taken", holds: "1", snapshots: 1},
		{point: "snapshot.thawed", holds: "1", snapshots: 1},
		{point: "stop.killed", holds: "2", snapshots: 1, down: true},
		{point: "rollback.exchanged", holds: "1", snapshots: 1, down: true},
		{point: "restore.killed", holds: "3", snapshots: 1, down: true},
		{point: "restore.exchanged", holds: "1", snapshots: 1, either: true},
		{point: "restore.succeeded", holds: "3 1", snapshots: 1, down: true},
	} {
		t.Run(tc.point, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), crashPoint+"="+lifeCrash+tc.point, crashDir+"="+dir, crashAgent+"="+path, crashRoot+"="+root)
			out, err := cmd.CombinedOutput()
			if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
				t.Fatalf("the server was not killed: %v, %s", err, out)
			}
			d := open(t, dir, "")
			handles, err := d.List(t.Context())
			if err != nil || len(handles) != 1+tc.halves {
				t.Fatalf("got %v, %v; want one sandbox and %d halves", handles, err, tc.halves)
			}
			handles = slices.DeleteFunc(handles, func(h runtime.Handle) bool {
				half, err := d.Open(t.Context(), h)
				if err != nil {
					t.Fatal(err)
				}
				if tc.halves == 0 || answers(half.(*native.Instance), time.Second) {
					return false
				}
				if err := half.Remove(t.Context()); err != nil {
					t.Fatal(err)
				}
				return true
			})
			if len(handles) != 1 {
				t.Fatalf("%d are whole, want one", len(handles))
			}
			found, err := d.Open(t.Context(), handles[0])
			if err != nil {
				t.Fatal(err)
			}
			i := found.(*native.Instance)
			if i.Paused() != tc.paused {
				t.Errorf("paused: %v, want %v", i.Paused(), tc.paused)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if tc.either {
				if err := i.Stop(ctx, 0); err != nil {
					t.Fatal(err)
				}
			}
			if tc.down || tc.either {
				if _, err := i.Wait(ctx); err != nil {
					t.Fatalf("it is not down: %v", err)
				}
				spec := crashSpec(root)
				spec.ID = handles[0].ID
				if err := i.Start(ctx, spec); err != nil {
					t.Fatal(err)
				}
			} else {
				if tc.paused == answers(i, time.Second) {
					t.Errorf("its agent answers: %v", !tc.paused)
				}
				if err := i.Resume(ctx); err != nil {
					t.Fatal(err)
				}
				// It goes on, and starts commands.
				sh(t, i, "", "a=$(cat /workspace/now); until [ \"$a\" != \"$(cat /workspace/now)\" ]; do sleep 0.01; done")
			}
			if got := strings.TrimSpace(sh(t, i, "", "cat /workspace/n")); !slices.Contains(strings.Fields(tc.holds), got) {
				t.Errorf("its disk holds %q, want %q", got, tc.holds)
			}
			kept, err := d.Snapshots(ctx)
			if err != nil || len(kept) != tc.snapshots {
				t.Fatalf("got snapshots %v, %v; want %d", kept, err, tc.snapshots)
			}
			for _, id := range kept {
				spec := crashSpec(root)
				spec.From = id
				fork, err := d.Create(ctx, spec)
				if err != nil {
					t.Fatalf("create from what was kept: %v", err)
				}
				if got := sh(t, fork, "", "cat /workspace/n"); got != "1\n" {
					t.Errorf("the snapshot holds %q", got)
				}
				if err := fork.Remove(ctx); err != nil {
					t.Error(err)
				}
				if err := d.RemoveSnapshot(ctx, id); err != nil {
					t.Error(err)
				}
			}
			if err := i.Remove(ctx); err != nil {
				t.Error(err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			nothing(t, leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
		})
	}
}

// crashDriver opens the driver of a process that is to die at point.
func crashDriver(point string, program []byte) (*native.Driver, error) {
	return native.Open(context.Background(), native.Options{Dir: os.Getenv(crashDir), Agent: program, Checkpoint: func(name string) {
		if name == point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
}

func crashLife(point string, program []byte) error {
	point = strings.TrimPrefix(point, lifeCrash)
	d, err := crashDriver(point, program)
	if err != nil {
		return err
	}
	return crashInLife(d, point, os.Getenv(crashRoot))
}
