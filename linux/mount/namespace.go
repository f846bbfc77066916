// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Namespace is a mount namespace of ours, and the thread that is in it, for kernels before
// Linux 6.15: they clone no mount that is attached nowhere, and overlay takes its layers by
// paths. In a namespace such mounts are attached, while they are used or until it is closed, and
// no other process sees them. It is safe for concurrent use; one call goes on at a time.
type Namespace struct {
	calls chan func()
	left  chan struct{} // closed once the thread has gone

	mu   sync.Mutex
	kept bool // Keep attached a mount
}

// What is in the root of a namespace.
const (
	insideLower = "lower"
	insideLayer = "layer"
	insideKept  = "kept"
)

// NeedsNamespace reports whether this kernel can do nothing with a mount that is attached nowhere.
func NeedsNamespace() (bool, error) {
	m, err := New("tmpfs", 0, Param{Key: "size", Value: "4k"})
	if err != nil {
		return false, err
	}
	defer func() { _ = m.Close() }()
	clone, err := Clone(m, "")
	if err != nil {
		return true, nil
	}
	return false, clone.Close()
}

// NewNamespace makes one.
func NewNamespace() (*Namespace, error) {
	y := &Namespace{calls: make(chan func()), left: make(chan struct{})}
	made := make(chan error)
	OnThread(func() {
		err := LeaveHost(insideLower, insideLayer, insideKept)
		made <- err
		if err == nil {
			for call := range y.calls {
				call()
			}
		}
		close(y.left)
	})
	if err := <-made; err != nil {
		return nil, err
	}
	return y, nil
}

// Close detaches what is in the namespace. No call is under way, and none follows.
func (y *Namespace) Close() (err error) {
	if y.kept {
		y.do(func() { err = unmount(insideKept) })
	}
	close(y.calls)
	<-y.left
	return err
}

// do runs fn on the thread.
func (y *Namespace) do(fn func()) {
	done := make(chan struct{})
	y.calls <- func() {
		defer close(done)
		fn()
	}
	<-done
}

// Keep attaches a detached mount until Release, or until the namespace is closed; one at a time. Of
// what is below it, CloneAt can make clones from then on.
func (y *Namespace) Keep(m int) (err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.kept {
		return errors.New("a namespace keeps one mount")
	}
	y.do(func() { err = attach(m, insideKept) })
	y.kept = err == nil
	return err
}

// Release detaches what Keep attached; another mount can be kept after it.
func (y *Namespace) Release() (err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.kept {
		y.do(func() { err = unmount(insideKept) })
		y.kept = err != nil
	}
	return err
}

// CloneAt is the package's CloneAt for what is below a mount that is kept.
func (y *Namespace) CloneAt(dir int, path string) (f *os.File, err error) {
	y.do(func() { f, err = CloneAt(dir, path) })
	return f, err
}

// Overlay makes a detached overlay, of the directories `upper` and `work` in layer over
// lower. Both are detached mounts, of which nothing can be made after a success; after an
// error they are what they were. The mount is made by around calling make, on the thread.
func (y *Namespace) Overlay(lower, layer *os.File, attrs int, around func(make func()) error, params ...Param) (m *os.File, err error) {
	y.do(func() {
		for _, at := range []struct {
			mount *os.File
			name  string
		}{{lower, insideLower}, {layer, insideLayer}} {
			if err = attach(int(at.mount.Fd()), at.name); err != nil {
				return
			}
			defer func() { err = errors.Join(err, detach(at.mount, at.name, err != nil)) }()
		}
		layers := []Param{
			{Key: "lowerdir", Value: "/" + insideLower},
			{Key: "upperdir", Value: "/" + insideLayer + "/upper"},
			{Key: "workdir", Value: "/" + insideLayer + "/work"},
		}
		if failed := around(func() { m, err = New("overlay", attrs, append(layers, params...)...) }); failed != nil {
			err = failed
		}
	})
	if err != nil && m != nil { // what it was made of could not be detached
		_ = m.Close()
		m = nil
	}
	return m, err
}

// detach takes what is attached at name away. Then m is a mount no more, and of no
// use; with again it becomes a copy that was made before, as detached as m once was.
func detach(m *os.File, name string, again bool) error {
	var err error
	if again {
		var clone *os.File
		if clone, err = CloneAt(unix.AT_FDCWD, "/"+name); err == nil {
			err = unix.Dup3(int(clone.Fd()), int(m.Fd()), unix.O_CLOEXEC)
			_ = clone.Close()
		}
	}
	return errors.Join(err, unmount(name))
}

func unmount(name string) error {
	if err := unix.Unmount("/"+name, unix.MNT_DETACH); err != nil {
		return &os.PathError{Op: "umount", Path: "/" + name, Err: err}
	}
	return nil
}

func attach(m int, name string) error {
	if err := unix.MoveMount(m, "", unix.AT_FDCWD, "/"+name, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "move_mount", Path: "/" + name, Err: err}
	}
	return nil
}
