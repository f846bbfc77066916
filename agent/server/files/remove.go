// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// Remove answers a remove.
func (s *Service) Remove(ctx context.Context, req *wire.Request) error {
	v, err := s.o.View(req.User, req.AsRoot)
	if err != nil {
		return err
	}
	p, err := s.Absolute("path", req.Path)
	if err != nil {
		return err
	}
	if err := s.protect("remove", p); err != nil {
		return err
	}
	dir, name := split(p)
	if name == "" {
		return fault.InvalidField("path", "%q ends in no name", message.Clip(shown(p), 400))
	}
	if req.Op == wire.OpRemoveIf {
		if err := checkCondition(req.If); err != nil {
			return err
		}
	}
	parent := -1
	full := false // a directory that is not empty
	v.Do(func() {
		if parent, err = s.openDir(dir); err != nil {
			return
		}
		if req.Op == wire.OpRemoveIf {
			lock := s.locks.of(name)
			lock.Lock()
			defer lock.Unlock()
			if err = meets(req.If, parent, name, p); err != nil {
				return
			}
		}
		if err = unix.Unlinkat(parent, name, 0); isDirError(err) {
			err = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
			full = errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST)
		}
	})
	if parent >= 0 {
		defer unix.Close(parent)
	}
	if req.Op == wire.OpRemoveIf && parent < 0 && errors.Is(err, unix.ENOENT) {
		err = &unmetError{p}
	}
	if err = s.tellUnmet(v, req.If, err); fault.Is(err, fault.PreconditionFailed) {
		return err
	}
	if full && req.Recursive {
		err = removeTree(ctx, v, parent, name)
	} else if full {
		return fault.New(fault.State, "remove: the directory %q is not empty", message.Clip(shown(p), 400)).
			WithRemedy("remove it with recursive set")
	}
	return fileFault(v, "remove", p, err)
}

// isDirError reports whether unlink refused for it is a directory.
func isDirError(err error) bool { return errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) }

const (
	// maxDepth is how deep a tree is descended, at one open directory a level. What is
	// deeper is moved up first.
	maxDepth = 64
	// maxPasses bounds how often a directory that others fill meanwhile is emptied.
	maxPasses = 16
	// maxTopPasses is maxPasses for the top, to which deep directories are moved.
	maxTopPasses = 20_000
)

// removeTree removes a directory and all in it. It works through open
// directories, follows no link, and stays on one mount; so it removes nothing
// else, whatever others do to the tree meanwhile. On an error, or when ctx
// ends, a part is removed.
func removeTree(ctx context.Context, v view.View, parent int, name string) error {
	t := treeRemover{ctx: ctx, v: v}
	top, err := t.open(parent, name)
	if err != nil {
		return err
	}
	defer top.Close()
	t.top = int(top.Fd())
	for range maxTopPasses {
		if _, err = t.empty(top, 0); err != nil {
			return err
		}
		v.Do(func() { err = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR) })
		if !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
	return err
}

// Empty removes all that is in an open directory, which stays.
func Empty(ctx context.Context, v view.View, dir *os.File) error {
	t := treeRemover{ctx: ctx, v: v, top: int(dir.Fd())}
	for range maxTopPasses {
		if left, err := t.empty(dir, 0); err != nil || !left {
			return err
		}
	}
	return unix.ENOTEMPTY
}

type treeRemover struct {
	ctx context.Context
	v   view.View
	top int
}

// Open opens a directory to be emptied: none behind a link or on another mount.
func (t *treeRemover) open(at int, name string) (*os.File, error) {
	var fd int
	var err error
	t.v.Do(func() {
		fd, err = dirs.Openat2(at, name, unix.OpenHow{
			Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
		})
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "directory"), nil
}

// empty removes what is in a directory, in passes until one finds nothing.
func (t *treeRemover) empty(dir *os.File, depth int) (left bool, err error) {
	for range maxPasses {
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return true, err
		}
		found := false
		for {
			names, _ := dir.Readdirnames(nameBatch)
			if len(names) == 0 {
				break
			}
			found = true
			if err := t.ctx.Err(); err != nil {
				return true, err
			}
			if err := t.removeBatch(int(dir.Fd()), names, depth); err != nil {
				return true, err
			}
		}
		if !found {
			return false, nil
		}
	}
	return true, nil
}

func (t *treeRemover) removeBatch(at int, names []string, depth int) (err error) {
	var dirs []string
	t.v.Do(func() {
		for _, name := range names {
			switch e := unix.Unlinkat(at, name, 0); {
			case e == nil, errors.Is(e, unix.ENOENT):
			case isDirError(e):
				dirs = append(dirs, name)
			default:
				err = e
				return
			}
		}
	})
	for _, name := range dirs {
		if err != nil {
			return err
		}
		err = t.removeDir(at, name, depth)
	}
	return err
}

func (t *treeRemover) removeDir(at int, name string, depth int) (err error) {
	t.v.Do(func() { err = unix.Unlinkat(at, name, unix.AT_REMOVEDIR) }) // many are empty
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.ENOTDIR):
		return unix.EPERM // unlink refused it, and it is no directory
	case !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST):
		return err
	}
	if depth == maxDepth {
		t.v.Do(func() { err = unix.Renameat(at, name, t.top, tempName()) })
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return err
	}
	dir, err := t.open(at, name)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil // it was exchanged; the next pass sees what for
	case err != nil:
		return err
	}
	defer dir.Close()
	if _, err := t.empty(dir, depth+1); err != nil {
		return err
	}
	t.v.Do(func() { err = unix.Unlinkat(at, name, unix.AT_REMOVEDIR) })
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}
