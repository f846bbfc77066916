// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/runtime/native/mount"
	"sandpit.dev/runtime/native/spawn"
)

// workers are locked threads for what needs a thread of a special kind.
type workers struct {
	calls chan func()
	ended chan int // the thread's id
	count int
}

// startWorkers starts n threads. join puts the calling thread into the agents'
// cgroups; what it starts inherits them.
func startWorkers(n int, join func() error) (*workers, error) {
	w := &workers{calls: make(chan func()), ended: make(chan int), count: n}
	ready := make(chan error)
	for range n {
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			err := join()
			if err == nil {
				// Setting fsuid below must not take the capabilities away.
				const noSetuidFixup = 1 << 2 // SECBIT_NO_SETUID_FIXUP
				err = unix.Prctl(unix.PR_SET_SECUREBITS, noSetuidFixup, 0, 0, 0)
			}
			ready <- err
			if err == nil {
				for fn := range w.calls {
					fn()
				}
			}
			w.ended <- unix.Gettid()
		}()
	}
	var failed error
	for range n {
		if err := <-ready; err != nil {
			failed = fmt.Errorf("prepare a worker thread: %w", err)
		}
	}
	if failed != nil {
		w.close()
		return nil, failed
	}
	return w, nil
}

// close ends the threads, and waits until the kernel has let go of them: a group
// that a thread is in cannot be removed.
func (w *workers) close() {
	close(w.calls)
	deadline := time.Now().Add(time.Second)
	for range w.count {
		task := "/proc/self/task/" + strconv.Itoa(<-w.ended)
		for time.Now().Before(deadline) {
			if _, err := os.Stat(task); err != nil {
				break
			}
			<-time.After(time.Millisecond) // nothing tells of a thread's end
		}
	}
}

func (w *workers) do(fn func()) {
	done := make(chan struct{})
	w.calls <- func() {
		defer close(done)
		fn()
	}
	<-done
}

// overlay mounts, detached, the layer over the image, both seen through the
// user namespace's map: on disk all ids stay canonical, and root is 0.
//
// It is not volatile: an fsync inside is an fsync. index and nfs_export make
// file handles of the overlay decodable, which tracking of changes needs.
//
// The kernel lets go of a sandbox's mounts some time after its last process, and
// refuses the layer until then; nothing tells when. So a busy layer is tried
// again, until ctx is done.
func (w *workers) overlay(ctx context.Context, image, upper, work *os.File, base uint32) (m *os.File, err error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		w.do(func() { m, err = mountOverlay(image, upper, work, base) })
		if !errors.Is(err, unix.EBUSY) {
			return m, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

// mountOverlay runs on a worker's thread.
func mountOverlay(image, upper, work *os.File, base uint32) (*os.File, error) {
	// Overlay makes its work directory with the ids of the thread that mounts
	// it; they must exist in the map, or it mounts read-only and tells nobody.
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(base), 0, 0)
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(base), 0, 0)
	defer func() {
		_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, 0, 0, 0)
		_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, 0, 0, 0)
	}()
	return mount.New("overlay", unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOSUID,
		mount.Param{Key: "lowerdir+", File: image},
		mount.Param{Key: "upperdir", File: upper},
		mount.Param{Key: "workdir", File: work},
		mount.Param{Key: "index", Value: "on"},
		mount.Param{Key: "nfs_export", Value: "on"})
}

func (w *workers) spawn(p spawn.Process) (pid int, err error) {
	w.do(func() { pid, err = spawn.Start(p) })
	return pid, err
}
