// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"path"
	"strings"
	"sync"
	"time"

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
	need    chan struct{} // closed once somebody waits for a lazy one; nil: it is no lazy one
	once    sync.Once     // closes need
}

// lazyPause is how long a lazy account is put off that nobody waits for: whoever sent it is about to do something that is
// waited for, and the sandbox's first program comes up meanwhile.
const lazyPause = 20 * time.Millisecond

// wait waits until the lists inside have the account: the image's are copied to the sandbox's disk for that, which
// takes milliseconds, and until its directories are made where that was put off. Whatever could see them begins after it.
func (o *ownAccount) wait() error {
	if o.written == nil {
		return nil
	}
	if o.need != nil {
		o.once.Do(func() { close(o.need) })
	}
	<-o.written
	return o.failed
}

// Account is the sandbox's user as it is to be called, and where it works.
type Account = wire.Account

// Begin has the user be what a says from the first call on, where no call did yet: all of them wait until it is made.
func (s *Server) Begin(a Account) error {
	a.Lazy = true
	return s.setAccount(&a)
}

// setAccount makes the user what a request says: in the sandbox's list, with directories of its own
// that it can write, and for all that is started from then on. Of a lazy one all of that is done aside.
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
	last := s.account.Load()
	make1 := func() (write func() error, err error) {
		if write, err = s.makeAccount(a, id); err == nil {
			err = last.wait()
		}
		if a.Again {
			err = nil
		}
		return write, err
	}
	if a.Lazy {
		next.need = make(chan struct{})
		s.account.Store(next)
		s.work.Go(func() { // it ends when the disk has answered
			pause := time.NewTimer(lazyPause)
			defer pause.Stop()
			select {
			case <-next.need:
			case <-pause.C:
			case <-s.ctx.Done():
			}
			write, err := make1()
			next.made(write, err, a.Again)
		})
		return nil
	}
	write, err := make1()
	if err != nil {
		return err
	}
	s.account.Store(next)
	s.work.Go(func() { next.made(write, nil, a.Again) })
	return nil
}

// made writes the lists, where nothing has failed, and lets those go on who wait.
func (o *ownAccount) made(write func() error, err error, again bool) {
	defer close(o.written)
	if err == nil {
		err = write()
	}
	if !again {
		o.failed = err
	}
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
	for _, dir := range accounts.Ordered(a.Home, a.Workdir) {
		field := "account.home"
		if dir != a.Home {
			field = "account.workdir"
		}
		if failed := s.ownDir(root, field, dir, id); failed != nil {
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
