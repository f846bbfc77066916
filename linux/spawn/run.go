// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run runs the script in the user, mount and host name namespaces of the process that
// pidfd is open on, as the root of its user namespace with all capabilities there, and
// waits for it: no code of the sandbox's may run yet. All other namespaces are the
// server's, that of process ids too: to be in that of the sandbox takes a second child,
// and as long again. Descriptors that it opens are the server's own and close on exec.
// It blocks its thread meanwhile.
//
// A parameter that is a pointer's number is converted in the call itself: that keeps
// what it points to alive, and off the stack, which may move.
//
//go:uintptrescapes
func (t *Script) Run(pidfd *os.File, params ...uintptr) (*Opened, error) {
	v := t.visit(params)
	v.where, v.namespaces = pidfd.Fd(), unix.CLONE_NEWUSER|unix.CLONE_NEWNS|unix.CLONE_NEWUTS
	defer runtime.KeepAlive(pidfd)
	return t.run(v)
}

// RunAs is Run in the user namespace alone; all others are the server's, but for
// the mount namespace where mounts is not nil.
//
//go:uintptrescapes
func (t *Script) RunAs(userns, mounts *os.File, params ...uintptr) (*Opened, error) {
	v := t.visit(params)
	v.where, v.namespaces = userns.Fd(), unix.CLONE_NEWUSER
	if mounts != nil {
		v.mounts = mounts.Fd()
	}
	defer runtime.KeepAlive(userns)
	defer runtime.KeepAlive(mounts)
	return t.run(v)
}

// RunAlone is Run in the server's own namespaces, with its rights, but as the only
// process that there ever is in a new namespace of process ids.
//
//go:uintptrescapes
func (t *Script) RunAlone(params ...uintptr) (*Opened, error) {
	v := t.visit(params)
	v.fresh = unix.CLONE_NEWPID
	return t.run(v)
}

func (t *Script) visit(params []uintptr) *visit {
	return &visit{method: t.Method, where: noFile, mounts: noFile, run: run{calls: t.calls, params: params}}
}

func (t *Script) run(v *visit) (*Opened, error) {
	report, err := newReport(t.Method)
	if err != nil {
		return nil, fmt.Errorf("visit a sandbox: %w", err)
	}
	defer report.free(t.Method)
	v.report, v.run.played = report, &report.script
	// The table of descriptors is shared: what the script opens stays with us. Its end is
	// told by no signal, which would only interrupt one of our threads: it is waited for.
	v.args = cloneArgs{flags: unix.CLONE_FILES | unix.CLONE_CLEAR_SIGHAND | v.fresh}
	child, errno := v.begin()
	if errno != 0 {
		return nil, fmt.Errorf("visit a sandbox: clone3: %w", errno)
	}
	_, err = wait(child)
	runtime.KeepAlive(v)
	runtime.KeepAlive(t) // has the strings of the calls
	opened := v.run.opened()
	switch {
	case report.failed != stageNone:
		err = fmt.Errorf("visit a sandbox: %s: %w", report.failed, report.errno)
	case err != nil:
		err = fmt.Errorf("visit a sandbox: wait: %w", err)
	default:
		err = v.run.err()
	}
	if err != nil {
		opened.Close()
		return nil, err
	}
	return opened, nil
}

// visit is what the child of a run works from.
type visit struct {
	method     Method
	mounts     uintptr // mount namespace that is joined first, or noFile
	where      uintptr // pidfd, or descriptor of a namespace, or noFile
	namespaces uintptr // that are joined of where
	fresh      uint64  // namespaces that it is born into
	run        run
	report     *report

	args  cloneArgs
	stack stack // unless memory is copied
}

// enter joins the namespaces.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (v *visit) enter() bool {
	if v.mounts != noFile {
		if _, _, e := syscall.RawSyscall(unix.SYS_SETNS, v.mounts, unix.CLONE_NEWNS, 0); e != 0 {
			return v.fail(stageMounts, uintptr(e))
		}
	}
	if v.where == noFile {
		return true
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_SETNS, v.where, v.namespaces, 0); e != 0 {
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
	v.report.failed, v.report.errno = s, unix.Errno(errno)
	return false
}
