// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/view"
	"sandpit.dev/linux/seccomp/install"
)

// The sandbox's user. Images carry an account of these numbers.
const (
	userID   = 1000
	userName = "sandbox"
	userHome = "/home/sandbox"
)

// lockedView is a locked thread that sees the sandbox in one way. It is a
// [view.View], and made when it is started: many sandboxes never need a root.
type lockedView struct {
	identity view.Identity
	mounts   *os.File // the mount namespace that it sees; nil: the agent's own
	lock     lock
	prepare  func() error // what its thread does first; nil: nothing
	calls    chan func()

	once sync.Once
	err  error
}

// Do runs fn on the view's thread and waits for it.
func (v *lockedView) Do(fn func()) {
	done := make(chan struct{})
	v.calls <- func() {
		defer close(done)
		fn()
	}
	<-done
}

// Fork runs fn, which forks, as the sandbox's root to the kernel's file checks:
// the groups of commands are root's, and the user's rights end there. The child
// becomes the user on its own way to execve.
func (v *lockedView) Fork(fn func()) {
	if v.identity.UID == 0 {
		fn()
		return
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, 0, 0, 0)
	defer func() { _, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(v.identity.UID), 0, 0) }()
	fn()
}

// Identity is whose rights the view has.
func (v *lockedView) Identity() view.Identity { return v.identity }

// lock says how a view's thread is locked down, in this order.
type lock struct {
	joins  []*os.File              // v1 groups of the sandbox's commands
	drop   uint64                  // what commands lack of the agent's bounding set
	filter []byte                  // seccomp
	answer func(*install.Listener) // of the calls that the filter hands over; runs until the thread ends
}

// Start makes the thread. It serves as long as the agent lives, which is as
// long as the sandbox does.
func (v *lockedView) Start() error {
	v.once.Do(func() {
		ready := make(chan error)
		go v.run(ready)
		if err := <-ready; err != nil {
			v.err = fmt.Errorf("the %s view: %w", v.identity.Name, err)
		}
	})
	return v.err
}

// run is the view's thread, once it is another than the first: /proc/1 shows that one's
// namespaces and limits, and they must be the agent's own.
func (v *lockedView) run(ready chan<- error) {
	runtime.LockOSThread() // never unlocked: nothing else may run on it
	if unix.Gettid() == unix.Getpid() {
		defer runtime.UnlockOSThread()
		elsewhere := make(chan error)
		go v.run(elsewhere) // while this goroutine holds the first
		ready <- <-elsewhere
		return
	}
	var err error
	if v.prepare != nil {
		err = v.prepare()
	}
	if err == nil {
		err = v.enter()
	}
	if err == nil {
		err = v.lock.apply(v.identity)
	}
	ready <- err
	if err != nil {
		return
	}
	for fn := range v.calls {
		fn()
	}
}

// enter moves the calling thread into the view's mount namespace, for good.
func (v *lockedView) enter() error {
	if v.mounts == nil {
		return nil
	}
	// The kernel wants its root and working directory to be its own.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare its root: %w", err)
	}
	if err := unix.Setns(int(v.mounts.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter its mounts: %w", err)
	}
	_ = v.mounts.Close()
	return nil
}

// usualSlack is the kernel's timer slack of every process, in nanoseconds. The
// agent's own is longer.
const usualSlack = 50_000

func (l lock) apply(id view.Identity) error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, usualSlack, 0, 0, 0); err != nil {
		return fmt.Errorf("set the timer slack of commands: %w", err)
	}
	for _, f := range l.joins {
		// "0" is the writing thread. Its children start in the group, the rest
		// of the agent stays outside.
		if _, err := unix.Write(int(f.Fd()), []byte("0")); err != nil {
			return fmt.Errorf("join %s: %w", f.Name(), err)
		}
	}
	for rest := l.drop; rest != 0; rest &= rest - 1 {
		c := bits.TrailingZeros64(rest)
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if id.UID != 0 {
		// Files are opened on this thread with exactly the user's rights. The
		// kernel takes the file capabilities away with the id.
		if err := setfs(unix.SYS_SETFSGID, id.GID); err != nil {
			return err
		}
		if err := setfs(unix.SYS_SETFSUID, id.UID); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	listener, err := install.Listen(l.filter)
	if err != nil {
		return fmt.Errorf("install the seccomp filter: %w", err)
	}
	if listener != nil {
		go l.answer(listener)
	}
	return nil
}

// setfs sets the thread's file-system id; the call answers with the old one
// and never fails, so a second call reads it back.
func setfs(call uintptr, id int) error {
	_, _, _ = unix.RawSyscall(call, uintptr(id), 0, 0)
	if now, _, _ := unix.RawSyscall(call, ^uintptr(0), 0, 0); int(now) != id {
		return errors.New("set file-system id to " + strconv.Itoa(id) + ": it stayed " + strconv.Itoa(int(now)))
	}
	return nil
}
