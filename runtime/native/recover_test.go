// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// failStore has the device of a store end before what is written next to it, so that its file
// system becomes read-only, as after any error of the disk below. It closes dir, which is in the store.
func failStore(t *testing.T, device string, dir *os.File) {
	t.Helper()
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	info, err := unix.IoctlLoopGetStatus64(fd)
	if err != nil {
		t.Fatal(err)
	}
	info.Sizelimit = 1 << 20
	if err := unix.IoctlLoopSetStatus64(fd, info); err != nil {
		t.Fatal(err)
	}
	_ = unix.Mkdirat(int(dir.Fd()), "write", 0o755)
	_ = unix.Syncfs(int(dir.Fd()))
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &st); err != nil || st.Flags&unix.ST_RDONLY == 0 {
		t.Fatalf("the store is not read-only: %v", err)
	}
	_ = dir.Close()
	info.Sizelimit = 0
	if err := unix.IoctlLoopSetStatus64(fd, info); err != nil {
		t.Fatal(err)
	}
}

func storeSpec(root string) runtime.Spec {
	return runtime.Spec{
		ID: sandbox.NewID(), Image: runtime.Image{Root: root}, Hostname: "box",
		Limits: sandbox.Limits{CPU: 1, MemoryMB: 256, DiskMB: 256, Pids: 128},
	}
}

// wantEvicted checks that an instance went down with its disk, and comes up with what was synced.
func wantEvicted(t *testing.T, i runtime.Instance, spec runtime.Spec) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exit, err := i.Wait(ctx)
	if err != nil || exit.Cause != sandbox.CauseHost || !strings.Contains(exit.Detail, "disk of all sandboxes failed") {
		t.Fatalf("Wait = %+v, %v; want that its disk failed", exit, err)
	}
	for err = i.Start(ctx, spec); fault.Is(err, fault.Unavailable) && ctx.Err() == nil; err = i.Start(ctx, spec) {
		<-time.After(20 * time.Millisecond) // it is being mounted anew
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := sh(t, i, "", "cat /workspace/file"); got != "kept\n" {
		t.Errorf("the file that was synced = %q", got)
	}
}

// wantNotDenied checks that an agent whose disk failed says so, and not that its user lacks a right.
func wantNotDenied(t *testing.T, socket string) {
	t.Helper()
	client := agent.NewClient(func(context.Context) (net.Conn, error) { return net.Dial("unix", socket) })
	write := func(path string) error {
		_, _, err := client.WriteFile(t.Context(), path, strings.NewReader("text"), sandbox.WriteFileOptions{})
		return err
	}
	if err := write("/workspace/other"); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "disk of all sandboxes") {
		t.Errorf("a write to a disk that failed = %v, want unavailable, for its disk", err)
	}
	if err := write("/usr/other"); !fault.Is(err, fault.Denied) {
		t.Errorf("a write to the system = %v, want denied", err)
	}
}

// A store that becomes read-only says so, and is mounted anew by the server that runs, or by
// the next one; nobody has to end a process by hand.
func TestAFailedStoreComesBackByItself(t *testing.T) {
	needRoot(t)
	root := imagetest.Python(t).Root
	for _, yard := range []bool{false, true} {
		name := "WithoutAYard"
		if yard {
			name = "WithAYard"
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := native.Options{Dir: dir, Layers: layer.Loop, Yard: yard}
			d := openWith(t, o)
			t.Cleanup(func() { _ = d.Close() }) // of the last one
			spec, pausedSpec := storeSpec(root), storeSpec(root)
			i, err := d.Create(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			paused, err := d.Create(t.Context(), pausedSpec)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				for _, spec := range []runtime.Spec{spec, pausedSpec} {
					if i, err := d.Open(context.Background(), runtime.Handle{ID: spec.ID}); err != nil {
						t.Error(err)
					} else if err := i.Remove(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
			for _, i := range []runtime.Instance{i, paused} {
				sh(t, i, "", "echo kept >/workspace/file; sync")
			}
			pause := func(i runtime.Instance) {
				t.Helper()
				if err := i.(runtime.Pauser).Pause(t.Context()); err != nil {
					t.Fatal(err)
				}
			}

			pause(paused)
			device, logs := d.StoreOf(t, spec.ID)
			failStore(t, device, logs)
			wantEvicted(t, i, spec)
			wantEvicted(t, paused, pausedSpec)
			if d.Disk().Failed != nil {
				t.Errorf("the store is said to have failed: %v", d.Disk().Failed)
			}

			// The same while no server runs.
			pause(paused)
			device, logs = d.StoreOf(t, spec.ID)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			failStore(t, device, logs)
			wantNotDenied(t, filepath.Join(dir, "instances", string(spec.ID)+".sock"))
			d = openWith(t, o)
			if i, err = d.Open(t.Context(), runtime.Handle{ID: spec.ID}); err != nil {
				t.Fatal(err)
			}
			wantEvicted(t, i, spec)
			if paused, err = d.Open(t.Context(), runtime.Handle{ID: pausedSpec.ID}); err != nil {
				t.Fatal(err)
			}
			wantEvicted(t, paused, pausedSpec)
		})
	}
}
