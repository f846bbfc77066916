// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reaper takes the dead children of a process 1 whose kernel keeps no status of those
// that it reaped by itself (before Linux 6.15): those of commands with the status, and
// orphans. It is the only one that does, so nobody takes a status from before anybody's eyes.
//
// It sleeps in waitid(2), which wakes for a child however many die at once, where signals
// merge and Go's threads would take them from each other. That costs a thread while there
// are children, and none while there are not.
type reaper struct {
	srv     *Server
	begun   bool          // under the server's forkMu
	born    chan struct{} // has a message once there are children (again)
	waiting atomic.Bool   // its goroutine holds a thread in waitid
}

// begin makes the process reap by itself, from now on; under forkMu, before a fork. The
// goroutine lives until the Server is closed and no child is left.
func (r *reaper) begin() error {
	if r.begun {
		return nil
	}
	if err := handle(unix.SIGCHLD, &sigaction{}); err != nil { // the kernel reaps no more
		return err
	}
	r.begun = true
	r.srv.work.Go(r.run)
	return nil
}

// expect tells of a child. What forked it entered it in the server's list before.
func (r *reaper) expect() {
	select {
	case r.born <- struct{}{}:
	default:
	}
}

func (r *reaper) run() {
	for {
		r.waiting.Store(true)
		pid, err := deadChild()
		r.waiting.Store(false)
		switch {
		case err == nil:
			r.bury(pid)
			continue
		case !errors.Is(err, unix.ECHILD):
			r.srv.o.Logger.Error("waiting for children", "error", err)
		}
		// Whatever lives below process 1 descends from a child of it. So without one
		// there is nothing that could become an orphan.
		select {
		case <-r.born:
		case <-r.srv.ctx.Done():
			return
		}
	}
}

// bury reaps a dead child, and gives its status to who waits for it. No child is between
// its fork and its entry in the list meanwhile, nor reaped by who forked it.
func (r *reaper) bury(pid int) {
	s := r.srv
	s.forkMu.Lock()
	defer s.forkMu.Unlock()
	var status unix.WaitStatus
	if got, err := wait4(pid, &status, unix.WNOHANG|unix.WALL); err != nil || got != pid {
		return // who forked it has reaped it: its program could not be executed
	}
	if p := s.children[pid]; p != nil {
		delete(s.children, pid)
		p.buried <- status
	}
}

// deadChild waits for a child that has died, and leaves it as it is: ECHILD if there is none.
func deadChild() (pid int, err error) {
	var info unix.Siginfo
	for {
		err = unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return 0, os.NewSyscallError("waitid", err)
	}
	// si_pid: on 64-bit Linux the union begins 16 bytes in.
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), 16))), nil
}

// wait4 is wait4(2), however often it is interrupted.
func wait4(pid int, status *unix.WaitStatus, options int) (int, error) {
	for {
		got, err := unix.Wait4(pid, status, options, nil)
		if err != unix.EINTR {
			return got, err
		}
	}
}
