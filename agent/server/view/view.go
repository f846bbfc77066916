// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A View is one way of seeing the sandbox: for a runtime that isolates, a
// locked thread with its own mount namespace, seccomp filter and capabilities;
// for a plain agent the calling thread. Commands fork within Do, files are opened within Do.
type View interface {
	// Do runs fn on the view's thread and waits for it. The thread has the
	// file system credentials of the view's user. It may serialise its callers,
	// so fn is short. fn does not call Do.
	Do(fn func())
	// Identity says who acts. It is constant.
	Identity() Identity
}

// Forker is a [View] whose thread needs other rights to fork than to open
// files: the user may have none to put a process into its group.
type Forker interface {
	// Fork runs fn with them. It is called within Do.
	Fork(fn func())
}

// Starter is a [View] whose thread is made when it is first needed.
type Starter interface {
	// Start makes it, once; later calls give the first one's error.
	Start() error
}

// Identity is who commands and file operations of a view act as.
type Identity struct {
	Name     string // "sandbox", "root"
	UID, GID int
	Home     string // $HOME; inside
	// Credential is what a command's process takes on between fork and exec;
	// nil: it keeps the thread's.
	Credential *syscall.Credential
	// AmbientCaps are kept by a command's process.
	AmbientCaps []uintptr
}

// Plain is a view without a thread of its own. If id has a Credential that is
// not the process's own user, files are opened with its rights, for which
// the process must be root.
func Plain(id Identity) View {
	return plainView{id: id, drop: id.Credential != nil && int(id.Credential.Uid) != os.Geteuid()}
}

type plainView struct {
	id   Identity
	drop bool
}

func (v plainView) Identity() Identity { return v.id }

// Start tries whether the process can take on the user's rights.
func (v plainView) Start() (err error) {
	if !v.drop {
		return nil
	}
	tried := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends, whatever its rights are
		tried <- v.takeOn()
	}()
	return <-tried
}

// Do takes on the user's file system ids and groups for the time of fn. They
// are a thread's own in Linux; the raw calls leave all other threads alone. Where the kernel
// refuses them, fn is not called: the goroutine ends, its thread with it, and whoever made
// the call sees its connection close.
func (v plainView) Do(fn func()) {
	if !v.drop {
		fn()
		return
	}
	runtime.LockOSThread()
	uid, gid := os.Geteuid(), os.Getegid()
	groups, err := unix.Getgroups()
	if err != nil {
		groups = nil
	}
	own := make([]uint32, len(groups))
	for i, g := range groups {
		own[i] = uint32(g)
	}
	if v.takeOn() != nil {
		runtime.Goexit()
	}
	defer func() {
		if setfs(unix.SYS_SETFSUID, uid) != nil || setfs(unix.SYS_SETFSGID, gid) != nil || setGroups(own) != nil {
			return // the thread stays locked, and ends with its goroutine
		}
		runtime.UnlockOSThread()
	}()
	fn()
}

// takeOn gives the thread the user's groups and file system ids, or fails.
func (v plainView) takeOn() error {
	if err := setGroups(v.id.Credential.Groups); err != nil {
		return os.NewSyscallError("setgroups", err)
	}
	if err := setfs(unix.SYS_SETFSGID, int(v.id.Credential.Gid)); err != nil {
		return err
	}
	return setfs(unix.SYS_SETFSUID, int(v.id.Credential.Uid))
}

// Fork sets the thread's own file system ids again for a fork: the user has
// no say over cgroups, and the child takes on its Credential by itself.
func (v plainView) Fork(fn func()) {
	if !v.drop {
		fn()
		return
	}
	_ = setfs(unix.SYS_SETFSUID, os.Getuid())
	defer func() { _ = setfs(unix.SYS_SETFSUID, int(v.id.Credential.Uid)) }() // nothing is opened after a fork
	fn()
}

// setfs sets the thread's file system user or group id. The call answers with the old one whether
// or not it worked, so a second one reads it back. gVisor has no such calls, and goes by the effective ids, which are a thread's own, too:
// the real and the saved one stay root's, so that no process of the user may send it signals or trace it.
func setfs(call uintptr, id int) error {
	if _, _, errno := unix.RawSyscall(call, uintptr(id), 0, 0); errno == unix.ENOSYS {
		effective := map[uintptr]uintptr{unix.SYS_SETFSUID: unix.SYS_SETRESUID, unix.SYS_SETFSGID: unix.SYS_SETRESGID}[call]
		if _, _, errno := unix.RawSyscall(effective, ^uintptr(0), uintptr(id), ^uintptr(0)); errno != 0 {
			return fmt.Errorf("the kernel does not let the agent act with the id %d: %w", id, errno)
		}
		return nil
	}
	if now, _, _ := unix.RawSyscall(call, ^uintptr(0), 0, 0); int(now) != id {
		return fmt.Errorf("the kernel does not let the agent have the rights of id %d in the file system: it stayed %d", id, int(now))
	}
	return nil
}

// setGroups is setgroups(2) for this thread alone.
func setGroups(gids []uint32) error {
	var p unsafe.Pointer
	if len(gids) > 0 {
		p = unsafe.Pointer(&gids[0])
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(gids)), uintptr(p), 0); errno != 0 {
		return errno
	}
	return nil
}
