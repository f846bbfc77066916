// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Play runs the tape in all namespaces of the process that pidfd is open on, as
// the root of its user namespace with all capabilities there, and waits for it:
// no code of the sandbox's may run yet. Descriptors that it opens are the
// server's own and close on exec. It blocks its thread meanwhile.
//
// A parameter that is a pointer's number is converted in the call itself: that keeps
// what it points to alive, and off the stack, which may move.
//
//go:uintptrescapes
func (t *Tape) Play(pidfd *os.File, params ...uintptr) (*Played, error) {
	return t.play(pidfd, unix.CLONE_NEWUSER|Namespaces, params)
}

// PlayAs is Play in the user namespace alone; all others are the server's.
//
//go:uintptrescapes
func (t *Tape) PlayAs(userns *os.File, params ...uintptr) (*Played, error) {
	return t.play(userns, unix.CLONE_NEWUSER, params)
}

func (t *Tape) play(where *os.File, namespaces uintptr, params []uintptr) (*Played, error) {
	v := &visit{where: where.Fd(), namespaces: namespaces, run: run{calls: t.calls, params: params, failed: -1}}
	middle, errno := vforkVisit(v)
	runtime.KeepAlive(where)
	runtime.KeepAlive(t)
	if errno != 0 {
		return nil, fmt.Errorf("visit a sandbox: clone3: %w", errno)
	}
	_, err := wait(middle)
	if v.pid != 0 {
		if _, werr := wait(v.pid); err == nil {
			err = werr
		}
	}
	played := &Played{fds: make([]int, len(t.calls))}
	for i := range t.calls {
		played.fds[i] = -1
		if fd := v.run.results[i]; t.calls[i].opens && v.run.made(i) && fd != noResult {
			played.fds[i] = int(fd)
		}
	}
	switch {
	case v.failed != stageNone:
		err = fmt.Errorf("visit a sandbox: %s: %w", v.failed, v.errno)
	case err != nil:
		err = fmt.Errorf("visit a sandbox: wait: %w", err)
	case v.run.failed >= 0:
		err = fmt.Errorf("%s: %w", t.calls[v.run.failed].what, v.run.errno)
	case !v.run.done:
		err = fmt.Errorf("visit a sandbox: the child was killed")
	}
	if err != nil {
		played.Close()
		return nil, err
	}
	return played, nil
}

// visit is what the two children of Play work from.
type visit struct {
	where      uintptr // pidfd, or descriptor of a namespace
	namespaces uintptr // that are joined
	run        run

	pid    int // of the second child
	failed stage
	errno  unix.Errno
}

// vforkVisit is vfork for a visit: the first child joins the namespaces, the
// second is in the pid namespace too and plays the tape.
//
//go:norace
//go:noinline
//go:nocheckptr
func vforkVisit(v *visit) (pid int, errno unix.Errno) {
	// Both share the table of descriptors: what the tape opens stays with us.
	outer := cloneArgs{flags: unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_FILES | unix.CLONE_CLEAR_SIGHAND, exitSignal: uint64(unix.SIGCHLD)}
	inner := cloneArgs{flags: unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_FILES | unix.CLONE_PARENT}

	runtimeBeforeFork()
	r, e := cloneVfork(&outer, unsafe.Sizeof(outer))
	if e != 0 || r != 0 {
		runtimeAfterFork()
		return int(r), unix.Errno(e)
	}
	if !v.enter() {
		exit(1)
	}
	r, e = cloneVfork(&inner, unsafe.Sizeof(inner))
	if e != 0 {
		v.fail(stageClone, e)
		exit(1)
	}
	if r != 0 {
		v.pid = int(r)
		exit(0)
	}
	v.run.play()
	exit(0)
	return 0, 0
}

//go:norace
//go:nosplit
//go:nocheckptr
func (v *visit) enter() bool {
	if _, _, e := unix.RawSyscall(unix.SYS_SETNS, v.where, v.namespaces, 0); e != 0 {
		return v.fail(stageJoin, uintptr(e))
	}
	if s, e := becomeRoot(); s != stageNone {
		return v.fail(s, e)
	}
	return true
}

//go:norace
//go:nosplit
func (v *visit) fail(s stage, errno uintptr) bool {
	v.failed, v.errno = s, unix.Errno(errno)
	return false
}
