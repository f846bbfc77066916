// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Named is base under another name and with another home.
func Named(base View, name, home string) View {
	id := base.Identity()
	id.Name, id.Home = name, home
	return derived{View: base, id: id}
}

// As is base, a view of root's, for another of the sandbox's users, who is not root: its commands
// and file operations have that user's rights and no more. The identity has a Credential.
func As(base View, id Identity) View {
	return derived{View: base, id: id, drop: true}
}

// derived is a view with another identity than its thread's.
type derived struct {
	View
	id   Identity
	drop bool // the thread takes on the user's rights in the file system
}

func (v derived) Identity() Identity { return v.id }

// Start makes the thread of the view below.
func (v derived) Start() error {
	if s, ok := v.View.(Starter); ok {
		return s.Start()
	}
	return nil
}

// Do runs fn with the user's file system ids and groups. Where the kernel refuses them fn is not
// called, and the caller's goroutine ends, which closes the connection of the call.
func (v derived) Do(fn func()) {
	if !v.drop {
		v.View.Do(fn)
		return
	}
	done := false
	v.View.Do(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		groups, err := unix.Getgroups()
		if err != nil {
			return
		}
		p := plainView{id: v.id}
		defer restore(groups)
		if p.takeOn() == nil {
			fn()
			done = true
		}
	})
	if !done {
		runtime.Goexit()
	}
}

// restore gives the thread root's rights back, with these groups. It panics where that fails: a thread that kept the
// rights of another user would go on to act with them.
func restore(groups []int) {
	own := make([]uint32, len(groups))
	for i, g := range groups {
		own[i] = uint32(g)
	}
	if setfs(unix.SYS_SETFSUID, 0) != nil || setfs(unix.SYS_SETFSGID, 0) != nil || setGroups(own) != nil {
		panic("view: the thread of the sandbox's root does not get its rights back")
	}
}

// Fork runs fn with the rights that the thread needs to fork: the child takes on the Credential by itself.
func (v derived) Fork(fn func()) {
	if v.drop {
		plainView{id: v.id, drop: true}.Fork(fn)
		return
	}
	if f, ok := v.View.(Forker); ok {
		f.Fork(fn)
		return
	}
	fn()
}
