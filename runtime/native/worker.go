// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/runtime/native/mount"
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
		onThread(func() {
			err := join()
			if err == nil {
				err = leaveMounts()
			}
			ready <- err
			if err == nil {
				for fn := range w.calls {
					fn()
				}
			}
			w.ended <- unix.Gettid()
		})
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

// onThread runs fn on a thread of its own, which ends with it. It is never the
// process's first: that one shows in /proc/self, and cannot end.
func onThread(fn func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			fn() // and never unlocked
			return
		}
		placed := make(chan struct{})
		go func() {
			runtime.LockOSThread() // not to the first thread: that is taken until we are placed
			close(placed)
			fn()
		}()
		<-placed
		runtime.UnlockOSThread()
	}()
}

// leaveMounts gives the calling thread a mount namespace with nothing in it but
// /proc. A sandbox begins with a copy of its starter's mounts: so it never has one of
// the host's, and there is next to nothing to copy, and to let go of again. Without
// a /proc the kernel gives the sandbox none of its own: it must not see more than
// whoever made it could.
func leaveMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	const quiet = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	empty, err := mount.New("tmpfs", quiet, mount.Param{Key: "mode", Value: "0555"}, mount.Param{Key: "size", Value: "4k"})
	if err != nil {
		return err
	}
	defer func() { _ = empty.Close() }()
	proc, err := mount.New("proc", quiet)
	if err != nil {
		return err
	}
	defer func() { _ = proc.Close() }()
	if err := unix.Mkdirat(int(empty.Fd()), "proc", 0o555); err != nil {
		return fmt.Errorf("make /proc: %w", err)
	}
	if err := mount.SetAttr(empty, unix.MOUNT_ATTR_RDONLY); err != nil {
		return err
	}
	if err := unix.MoveMount(int(empty.Fd()), "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach an empty root: %w", err)
	}
	if err := unix.Fchdir(int(empty.Fd())); err != nil {
		return fmt.Errorf("enter an empty root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the host's mounts: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("enter an empty root: %w", err)
	}
	if err := unix.MoveMount(int(proc.Fd()), "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach /proc: %w", err)
	}
	return nil
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

// start runs fn on a worker's thread and does not wait for it.
func (w *workers) start(fn func()) { w.calls <- fn }
