// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// Move answers a move. Within one file system it is a rename. Between two (the
// workspace and /tmp, for example, are two to the user) a complete copy
// takes the new name at once, and then the old one is removed.
func (s *Service) Move(ctx context.Context, req *wire.Request) error {
	v, err := s.o.View(req.User, req.AsRoot)
	if err != nil {
		return err
	}
	from, err := s.Absolute("path", req.Path)
	if err != nil {
		return err
	}
	to, err := s.Absolute("to", req.To)
	if err != nil {
		return err
	}
	for _, p := range []string{from, to} {
		if err := s.protect("move", p); err != nil {
			return err
		}
	}
	m := mover{v: v, overwrite: req.Overwrite, src: -1, dst: -1}
	defer m.close()
	v.Do(func() {
		var name string
		if m.src, name, err = s.openParent("path", from); err != nil {
			err = fileFault(v, "move", from, err)
			return
		}
		m.from = name
		if m.dst, m.to, err = s.openParent("to", to); err != nil {
			err = fileFault(v, "move", to, err)
			return
		}
		err = m.rename(m.src, m.from)
	})
	if errors.Is(err, unix.EXDEV) {
		err = m.copy(ctx)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EEXIST) && !req.Overwrite:
		return fault.New(fault.Exists, "move: %q exists already", message.Clip(shown(to), 400)).WithRemedy("set overwrite, or choose another name")
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		return fault.New(fault.State, "move: %q is a directory that is not empty", message.Clip(shown(to), 400)).WithRemedy("remove it first")
	case errors.Is(err, unix.EINVAL):
		return fault.InvalidField("to", "%q is inside of %q", message.Clip(shown(to), 400), message.Clip(shown(from), 400))
	case errors.Is(err, unix.EISDIR), errors.Is(err, unix.ENOTDIR):
		return fault.InvalidField("to", "%q and %q are not both directories, and one cannot replace the other", message.Clip(shown(from), 400), message.Clip(shown(to), 400))
	}
	return fileFault(v, "move", from, err)
}

// openParent opens a path's directory. It runs within Do.
func (s *Service) openParent(field, p string) (int, string, error) {
	dir, name := split(p)
	if name == "" {
		return -1, "", fault.InvalidField(field, "%q ends in no name", message.Clip(shown(p), 400))
	}
	fd, err := s.openDir(dir)
	return fd, name, err
}

type mover struct {
	v         view.View
	overwrite bool
	src, dst  int // open directories
	from, to  string
}

func (m *mover) close() {
	descriptor.CloseAll([]int{m.src, m.dst})
}

// rename renames a file. It runs within Do.
func (m *mover) rename(dir int, name string) error {
	flags := uint(unix.RENAME_NOREPLACE)
	if m.overwrite {
		flags = 0
	}
	return unix.Renameat2(dir, name, m.dst, m.to, flags)
}

// copy moves between file systems.
func (m *mover) copy(ctx context.Context) error {
	tmp := tempName()
	c := copier{ctx: ctx, v: m.v}
	err := c.entry(m.src, m.from, m.dst, tmp, 0)
	if err == nil {
		m.v.Do(func() { err = m.rename(m.dst, tmp) })
	}
	if err != nil {
		_ = removeAny(context.WithoutCancel(ctx), m.v, m.dst, tmp)
		return err
	}
	if err := removeAny(ctx, m.v, m.src, m.from); err != nil {
		return fault.Wrap(fault.State, err, "move: %q was copied to its new name, but could not be removed under the old one: %s",
			wire.EscapeName(m.from), message.Of(err)).WithRemedy("remove the old one")
	}
	return nil
}

// removeAny removes a file or a tree.
func removeAny(ctx context.Context, v view.View, dir int, name string) error {
	var err error
	v.Do(func() { err = unix.Unlinkat(dir, name, 0) })
	if isDirError(err) {
		return removeTree(ctx, v, dir, name)
	}
	return err
}
