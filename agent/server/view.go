// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
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

// Do takes on the user's file system ids and groups for the time of fn. They
// are a thread's own in Linux; the raw calls leave all other threads alone.
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
	setGroups(v.id.Credential.Groups)
	_, _ = unix.SetfsgidRetGid(int(v.id.Credential.Gid))
	_, _ = unix.SetfsuidRetUid(int(v.id.Credential.Uid))
	defer func() {
		_, _ = unix.SetfsuidRetUid(uid)
		_, _ = unix.SetfsgidRetGid(gid)
		setGroups(own)
		runtime.UnlockOSThread()
	}()
	fn()
}

// Fork sets the thread's own file system ids again for a fork: the user has
// no say over cgroups, and the child takes on its Credential by itself.
func (v plainView) Fork(fn func()) {
	if !v.drop {
		fn()
		return
	}
	_ = unix.Setfsuid(os.Geteuid())
	defer func() { _ = unix.Setfsuid(int(v.id.Credential.Uid)) }()
	fn()
}

// setGroups is setgroups(2) for this thread alone.
func setGroups(gids []uint32) {
	var p unsafe.Pointer
	if len(gids) > 0 {
		p = unsafe.Pointer(&gids[0])
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(gids)), uintptr(p), 0)
}
