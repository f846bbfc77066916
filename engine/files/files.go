// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package files has the verbs about files inside sandboxes: reading, writing, listing, searching
// and watching. It stands above the engine, whose uses of a sandbox it begins, and reaches files
// through the agent alone, with the rights of the user they are for. It knows no coat.
package files

import (
	"context"
	"io"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Service is the verbs. All its methods are safe for concurrent use.
//
// Paths are absolute, inside, or relative to the workspace. Who acts is in each
// call's options ("sandbox" or "root"; empty: sandbox), with exactly that user's
// rights. Like commands, all of these start a sandbox that idleness stopped.
type Service struct {
	engine  *engine.Engine
	watches *watches
}

// New returns the verbs above an engine. A project has at most so many watches open at once;
// zero: MaxWatches.
func New(e *engine.Engine, watches int) *Service {
	return &Service{engine: e, watches: newWatches(watches)}
}

// What counts as activity, in a word for people.
const (
	useFiles = "files"
	useWatch = "a watch"
)

// ReadFile opens a file for reading. Close the reader: the event with the bytes
// that it gave is written then. It ends when ctx does, or the engine.
func (s *Service) ReadFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.ReadFileOptions) (sandbox.FileInfo, io.ReadCloser, error) {
	u, err := s.use(ctx, c, access.SandboxesRead, ref, useFiles, &o.User, func(k *check.Fields) {
		k.Path("path", path)
		if o.Offset < 0 {
			k.Bad("offset", "%d is below 0", o.Offset)
		}
	})
	if err != nil {
		return sandbox.FileInfo{}, nil, err
	}
	info, d, err := s.download(ctx, u, path, o.User, func(ctx context.Context) (sandbox.FileInfo, io.ReadCloser, error) {
		return u.Client().ReadFile(ctx, path, o)
	})
	if err != nil {
		return sandbox.FileInfo{}, nil, err
	}
	return info, d, nil
}

// download returns what open opens inside, bound to ctx and to the engine. Its end ends the use of the
// sandbox, and is recorded.
func (s *Service) download(
	ctx context.Context, u *engine.Use, path, user string, open func(context.Context) (sandbox.FileInfo, io.ReadCloser, error),
) (sandbox.FileInfo, *download, error) {
	if err := s.engine.Store().Room(); err != nil { // for its event
		u.End()
		return sandbox.FileInfo{}, nil, err
	}
	ev := newEvent(u, sandbox.EventDownload, path, user)
	rctx, cancel := s.engine.Bind(ctx)
	info, r, err := open(rctx)
	if err != nil {
		err = u.Fail(ctx, err)
		record(ctx, u, ev, err)
		cancel()
		u.End()
		return sandbox.FileInfo{}, nil, err
	}
	ectx := context.WithoutCancel(ctx)
	d := &download{ReadCloser: r}
	d.over = func(n int64, err error) {
		ev.Bytes = n
		_ = record(ectx, u, ev, err) // logged; the bytes are delivered
		cancel()
		u.End()
	}
	context.AfterFunc(rctx, func() { _ = d.Close() })
	return info, d, nil
}

// download is a file being read.
type download struct {
	io.ReadCloser
	over func(n int64, err error)
	once sync.Once
	shut error // of closing

	mu  sync.Mutex
	n   int64
	err error
}

func (d *download) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n += int64(n)
	if err != nil && err != io.EOF { // itself: a connection that broke may wrap it
		d.err = err
	}
	return n, err
}

func (d *download) Close() error {
	d.once.Do(func() {
		d.shut = d.ReadCloser.Close()
		d.mu.Lock()
		n, failed := d.n, d.err
		d.mu.Unlock()
		d.over(n, failed)
	})
	return d.shut
}

// WriteFile writes a file whole, or leaves the old one as it was. It tells
// whether the file is new.
func (s *Service) WriteFile(ctx context.Context, c access.Caller, ref, path string, r io.Reader, o sandbox.WriteFileOptions) (sandbox.FileInfo, bool, error) {
	u, err := s.use(ctx, c, access.SandboxesWrite, ref, useFiles, &o.User, func(k *check.Fields) { k.Path("path", path) })
	if err != nil {
		return sandbox.FileInfo{}, false, err
	}
	var info sandbox.FileInfo
	var created bool
	err = s.upload(ctx, u, path, o.User, r, func(ctx context.Context, r io.Reader) error {
		info, created, err = u.Client().WriteFile(ctx, path, r, o)
		return err
	})
	return info, created, err
}

// upload has write take r inside, bound to ctx and to the engine, ends the use of the sandbox, and records
// how much was read.
func (s *Service) upload(ctx context.Context, u *engine.Use, path, user string, r io.Reader, write func(context.Context, io.Reader) error) error {
	defer u.End()
	ev := newEvent(u, sandbox.EventUpload, path, user)
	bound, cancel := s.engine.Bind(ctx)
	defer cancel()
	count := &counted{r: r}
	err := write(bound, count)
	ev.Bytes = count.n
	if err != nil {
		err = u.Fail(ctx, err)
	}
	if dbErr := record(ctx, u, ev, err); err == nil {
		err = dbErr
	}
	return err
}

type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// StatFile describes what is at a path; a link is not followed.
func (s *Service) StatFile(ctx context.Context, c access.Caller, ref, path, user string) (sandbox.FileInfo, error) {
	u, err := s.use(ctx, c, access.SandboxesRead, ref, useFiles, &user, func(k *check.Fields) { k.Path("path", path) })
	if err != nil {
		return sandbox.FileInfo{}, err
	}
	defer u.End()
	info, err := u.Client().Stat(ctx, path, user)
	if err != nil {
		err = u.Fail(ctx, err)
	}
	return info, err
}

// ListFiles returns what is in a directory, and whether there is more: than the limit, or than
// maxListing bytes.
func (s *Service) ListFiles(ctx context.Context, c access.Caller, ref, path string, o sandbox.ListFilesOptions) ([]sandbox.FileInfo, bool, error) {
	var list []sandbox.FileInfo
	held := 0
	more, err := s.EachFile(ctx, c, ref, path, o, func(f sandbox.FileInfo) error {
		if held += fileBytes + len(f.Name) + len(f.Path) + len(f.Target); held > maxListing {
			return sandbox.ErrEnough
		}
		list = append(list, f)
		return nil
	})
	return list, more, err
}

const (
	maxListing = 4 << 20 // bytes of a list that is held
	fileBytes  = 160     // of an entry, beside its text
)

// EachFile gives each entry of a directory, in the order of their names, as it comes from the
// sandbox, and tells whether there is more; see [agent.Client.EachFile].
func (s *Service) EachFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.ListFilesOptions, each func(sandbox.FileInfo) error) (bool, error) {
	u, err := s.use(ctx, c, access.SandboxesRead, ref, useFiles, &o.User, func(k *check.Fields) { k.Path("path", path) })
	if err != nil {
		return false, err
	}
	defer u.End()
	more, err := u.Client().EachFile(ctx, path, o, each)
	if err != nil {
		err = u.Fail(ctx, err)
	}
	return more, err
}

// MakeDir makes a directory.
func (s *Service) MakeDir(ctx context.Context, c access.Caller, ref, path string, o sandbox.MakeDirOptions) error {
	return s.change(ctx, c, ref, sandbox.EventFileMkdir, path, "", &o.User, func(ctx context.Context, cl *agent.Client) error {
		return cl.Mkdir(ctx, path, o)
	})
}

// MoveFile moves or renames.
func (s *Service) MoveFile(ctx context.Context, c access.Caller, ref, from, to string, o sandbox.MoveFileOptions) error {
	return s.change(ctx, c, ref, sandbox.EventFileMove, from, to, &o.User, func(ctx context.Context, cl *agent.Client) error {
		return cl.Move(ctx, from, to, o)
	})
}

// RemoveFile removes a file, or a directory.
func (s *Service) RemoveFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.RemoveFileOptions) error {
	return s.change(ctx, c, ref, sandbox.EventFileDelete, path, "", &o.User, func(ctx context.Context, cl *agent.Client) error {
		return cl.Remove(ctx, path, o)
	})
}

func (s *Service) change(ctx context.Context, c access.Caller, ref string, kind sandbox.EventType, path, to string, user *string, do func(context.Context, *agent.Client) error) error {
	u, err := s.use(ctx, c, access.SandboxesWrite, ref, useFiles, user, func(k *check.Fields) {
		k.Path("path", path)
		if kind == sandbox.EventFileMove {
			k.Path("to", to)
		}
	})
	if err != nil {
		return err
	}
	defer u.End()
	ev := newEvent(u, kind, path, *user)
	ev.To = to
	bound, cancel := s.engine.Bind(ctx)
	defer cancel()
	if err = do(bound, u.Client()); err != nil {
		err = u.Fail(ctx, err)
	}
	if dbErr := record(ctx, u, ev, err); err == nil {
		err = dbErr
	}
	return err
}

// use checks a call and begins the use that it is. It fills in the user.
func (s *Service) use(ctx context.Context, c access.Caller, scope access.Scope, ref, what string, user *string, more func(*check.Fields)) (*engine.Use, error) {
	c = c.Inside()
	if err := c.Require(scope); err != nil {
		return nil, err
	}
	var k check.Fields
	var err error
	more(&k)
	if *user, err = k.User(*user, s.engine.Defaults().ForbidRoot); err != nil {
		return nil, err
	}
	if err := k.Err(); err != nil {
		return nil, err
	}
	return s.engine.Use(ctx, c, scope, ref, what)
}

func newEvent(u *engine.Use, kind sandbox.EventType, path, user string) *sandbox.Event {
	ev := u.NewCallEvent(kind)
	ev.Path, ev.User = path, u.Account().Shown(user)
	return ev
}

// record commits the event of a call, with the counters. err is how the call failed, nil if it
// did not.
func record(ctx context.Context, u *engine.Use, ev *sandbox.Event, err error) error {
	ev.Duration = time.Since(ev.At)
	if err != nil {
		ev.OK, ev.Detail = false, sandbox.Clip(fault.As(err).Message, sandbox.MaxEventDetail)
	}
	return u.RecordCall(ctx, ev, func(s *sandbox.Sandbox) {
		switch ev.Type {
		case sandbox.EventUpload:
			s.BytesUploaded += ev.Bytes
		case sandbox.EventDownload:
			s.BytesDownloaded += ev.Bytes
		}
	})
}

// SearchFiles looks for lines of files, or for files, below a directory. dir is the
// directory as it was found.
func (s *Service) SearchFiles(ctx context.Context, c access.Caller, ref, path string, o sandbox.SearchFilesOptions) (dir sandbox.FileInfo, found []sandbox.FileMatch, end sandbox.SearchEnd, err error) {
	u, err := s.use(ctx, c, access.SandboxesRead, ref, useFiles, &o.User, func(k *check.Fields) { k.Path("path", path) })
	if err != nil {
		return dir, nil, end, err
	}
	defer u.End()
	dir, found, end, err = u.Client().Search(ctx, path, o)
	if err != nil {
		err = u.Fail(ctx, err)
	}
	return dir, found, end, err
}
