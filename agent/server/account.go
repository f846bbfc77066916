// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/accounts"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// ownAccount is the sandbox's user as it is called now. It does not change.
type ownAccount struct {
	view    view.View
	workdir string
	written chan struct{} // closed once the lists inside have it; nil: they do
	failed  error         // why they do not, once written is closed
}

// wait waits until the lists inside have the account: the image's are copied to the sandbox's disk for that, which
// takes milliseconds. Whatever could read them begins after it.
func (o *ownAccount) wait() error {
	if o.written == nil {
		return nil
	}
	<-o.written
	return o.failed
}

// setAccount makes the user what a request says: in the sandbox's list, with directories of its own
// that it can write, and for all that is started from then on.
func (s *Server) setAccount(a *wire.Account) error {
	if a == nil {
		return fault.InvalidField("account", "is missing")
	}
	if err := checkAccount(a); err != nil {
		return err
	}
	id := s.o.User.Identity()
	home := a.Home
	if s.o.Dir != "/" {
		home = path.Join(s.o.Dir, home) // what a command sees, where paths are not the sandbox's own
	}
	next := &ownAccount{view: view.Named(s.o.User, a.Name, home), workdir: a.Workdir, written: make(chan struct{})}
	write, err := s.makeAccount(a, id)
	if err != nil && !a.Again {
		return err
	}
	if err := s.account.Load().wait(); err != nil && !a.Again {
		return err
	}
	s.account.Store(next)
	s.work.Go(func() { // it ends when the disk has answered
		defer close(next.written)
		if err := write(); err != nil && !a.Again {
			next.failed = err
		}
	})
	return nil
}

// makeAccount makes the account's directories, and returns what writes its name. Each part is tried, whatever
// became of the one before, where a disk has had the account already.
func (s *Server) makeAccount(a *wire.Account, id view.Identity) (write func() error, err error) {
	write = func() error { return nil }
	root, err := accounts.Root(s.o.Dir)
	if err != nil {
		return write, err
	}
	defer unix.Close(root)
	for _, d := range []struct{ field, path string }{{"account.home", a.Home}, {"account.workdir", a.Workdir}} {
		if failed := s.ownDir(root, d.field, d.path, id); failed != nil {
			if err = failed; !a.Again {
				return write, err
			}
		}
	}
	r, failed := accounts.Plan(root, uint32(id.UID), a.Name, a.Home)
	if failed != nil {
		return write, failed
	}
	return func() error {
		root, err := accounts.Root(s.o.Dir)
		if err != nil {
			return err
		}
		defer unix.Close(root)
		return r.Write(root)
	}, err
}

// ownDir has a directory there that the user can write.
func (s *Server) ownDir(root int, field, p string, id view.Identity) error {
	dir, err := accounts.Own(root, field, p, id.UID, id.GID)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if s.o.Expose == nil {
		return nil
	}
	var st unix.Statfs_t
	s.o.User.Do(func() {
		var fd int
		if fd, err = s.files.Open(p, unix.O_PATH|unix.O_DIRECTORY); err == nil {
			err = unix.Fstatfs(fd, &st)
			_ = unix.Close(fd)
		}
	})
	if err != nil {
		return fault.InvalidField(field, "%q cannot be entered by the user: %s", message.Clip(p, 200), message.Of(err)).WithRemedy("choose another one")
	}
	if st.Flags&unix.ST_RDONLY == 0 {
		return nil
	}
	return s.o.Expose(dir)
}

// checkAccount checks what the server has checked: the agent writes it into files that have a form.
func checkAccount(a *wire.Account) error {
	plain := a.Name != "" && len(a.Name) <= wire.MaxUserName && a.Name != "root"
	for i, r := range a.Name {
		letter := r >= 'a' && r <= 'z' || r == '_'
		plain = plain && (letter || i > 0 && (r >= '0' && r <= '9' || r == '-'))
	}
	if !plain {
		return fault.InvalidField("account.name", "%q is not a valid name of an account", message.Clip(a.Name, 40))
	}
	for _, d := range []struct{ field, path string }{{"account.home", a.Home}, {"account.workdir", a.Workdir}} {
		if !path.IsAbs(d.path) || path.Clean(d.path) != d.path || d.path == "/" || len(d.path) > wire.MaxAccountPath || strings.ContainsAny(d.path, ":\n\x00") {
			return fault.InvalidField(d.field, "%q is not a valid directory of an account", message.Clip(d.path, 80))
		}
	}
	return nil
}
