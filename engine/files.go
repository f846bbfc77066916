// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Paths are absolute, inside, or relative to the workspace. Who acts is in each
// call's options ("sandbox" or "root"; empty: sandbox), with exactly that user's
// rights. Like commands, all of these start a sandbox that idleness stopped.

// ReadFile opens a file for reading. Close the reader: the event with the bytes
// that it gave is written then. It ends when ctx does, or the engine.
func (e *Engine) ReadFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.ReadFileOptions) (sandbox.FileInfo, io.ReadCloser, error) {
	u, err := e.fileUse(ctx, c, access.SandboxesRead, ref, &o.User, func(k *check.Fields) {
		k.Path("path", path)
		if o.Offset < 0 {
			k.Bad("offset", "%d is below 0", o.Offset)
		}
	})
	if err != nil {
		return sandbox.FileInfo{}, nil, err
	}
	if err := e.store.Room(); err != nil { // for its event
		u.End()
		return sandbox.FileInfo{}, nil, err
	}
	ev := u.fileEvent(sandbox.EventDownload, path, o.User)
	rctx, cancel := e.group.bind(ctx)
	info, r, err := u.l.client.ReadFile(rctx, path, o)
	if err != nil {
		err = u.Fail(ctx, err)
		u.fileDone(ctx, ev, err)
		cancel()
		u.End()
		return sandbox.FileInfo{}, nil, err
	}
	ectx := context.WithoutCancel(ctx)
	d := &download{ReadCloser: r}
	d.over = func(n int64, err error) {
		ev.Bytes = n
		_ = u.fileDone(ectx, ev, err) // logged; the bytes are delivered
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
func (e *Engine) WriteFile(ctx context.Context, c access.Caller, ref, path string, r io.Reader, o sandbox.WriteFileOptions) (sandbox.FileInfo, bool, error) {
	u, err := e.fileUse(ctx, c, access.SandboxesWrite, ref, &o.User, func(k *check.Fields) { k.Path("path", path) })
	if err != nil {
		return sandbox.FileInfo{}, false, err
	}
	defer u.End()
	ev := u.fileEvent(sandbox.EventUpload, path, o.User)
	bound, cancel := e.group.bind(ctx)
	defer cancel()
	count := &counted{r: r}
	info, created, err := u.l.client.WriteFile(bound, path, count, o)
	ev.Bytes = count.n
	if err != nil {
		err = u.Fail(ctx, err)
	}
	if dbErr := u.fileDone(ctx, ev, err); err == nil {
		err = dbErr
	}
	return info, created, err
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
func (e *Engine) StatFile(ctx context.Context, c access.Caller, ref, path, user string) (sandbox.FileInfo, error) {
	u, err := e.fileUse(ctx, c, access.SandboxesRead, ref, &user, func(k *check.Fields) { k.Path("path", path) })
	if err != nil {
		return sandbox.FileInfo{}, err
	}
	defer u.End()
	info, err := u.l.client.Stat(ctx, path, user)
	if err != nil {
		err = u.Fail(ctx, err)
	}
	return info, err
}

// ListFiles returns what is in a directory, and whether there is more: than the limit, or than
// maxListing bytes.
func (e *Engine) ListFiles(ctx context.Context, c access.Caller, ref, path string, o sandbox.ListFilesOptions) ([]sandbox.FileInfo, bool, error) {
	var list []sandbox.FileInfo
	held := 0
	more, err := e.EachFile(ctx, c, ref, path, o, func(f sandbox.FileInfo) error {
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
func (e *Engine) EachFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.ListFilesOptions, each func(sandbox.FileInfo) error) (bool, error) {
	u, err := e.fileUse(ctx, c, access.SandboxesRead, ref, &o.User, func(k *check.Fields) { k.Path("path", path) })
	if err != nil {
		return false, err
	}
	defer u.End()
	more, err := u.l.client.EachFile(ctx, path, o, each)
	if err != nil {
		err = u.Fail(ctx, err)
	}
	return more, err
}

// MakeDir makes a directory.
func (e *Engine) MakeDir(ctx context.Context, c access.Caller, ref, path string, o sandbox.MakeDirOptions) error {
	return e.changeFile(ctx, c, ref, sandbox.EventFileMkdir, path, "", &o.User, func(ctx context.Context, cl *agent.Client) error {
		return cl.Mkdir(ctx, path, o)
	})
}

// MoveFile moves or renames.
func (e *Engine) MoveFile(ctx context.Context, c access.Caller, ref, from, to string, o sandbox.MoveFileOptions) error {
	return e.changeFile(ctx, c, ref, sandbox.EventFileMove, from, to, &o.User, func(ctx context.Context, cl *agent.Client) error {
		return cl.Move(ctx, from, to, o)
	})
}

// RemoveFile removes a file, or a directory.
func (e *Engine) RemoveFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.RemoveFileOptions) error {
	return e.changeFile(ctx, c, ref, sandbox.EventFileDelete, path, "", &o.User, func(ctx context.Context, cl *agent.Client) error {
		return cl.Remove(ctx, path, o)
	})
}

func (e *Engine) changeFile(ctx context.Context, c access.Caller, ref string, kind sandbox.EventType, path, to string, user *string, do func(context.Context, *agent.Client) error) error {
	u, err := e.fileUse(ctx, c, access.SandboxesWrite, ref, user, func(k *check.Fields) {
		k.Path("path", path)
		if kind == sandbox.EventFileMove {
			k.Path("to", to)
		}
	})
	if err != nil {
		return err
	}
	defer u.End()
	ev := u.fileEvent(kind, path, *user)
	ev.To = to
	bound, cancel := e.group.bind(ctx)
	defer cancel()
	if err = do(bound, u.l.client); err != nil {
		err = u.Fail(ctx, err)
	}
	if dbErr := u.fileDone(ctx, ev, err); err == nil {
		err = dbErr
	}
	return err
}

// fileUse checks a file call and begins its use. It fills in the user.
func (e *Engine) fileUse(ctx context.Context, c access.Caller, scope access.Scope, ref string, user *string, more func(*check.Fields)) (*Use, error) {
	if err := c.Require(scope); err != nil {
		return nil, err
	}
	var k check.Fields
	var err error
	more(&k)
	if *user, err = k.User(*user, e.defaults.ForbidRoot); err != nil {
		return nil, err
	}
	if err := k.Err(); err != nil {
		return nil, err
	}
	return e.use(ctx, c, scope, ref, actFiles)
}

func (u *Use) fileEvent(kind sandbox.EventType, path, user string) *sandbox.Event {
	ev := u.who.event(kind, u.b.named(), u.e.now())
	ev.Path, ev.User = path, user
	return ev
}

// named is enough of a record for an event, also of a sandbox just deleted.
func (b *entry) named() *sandbox.Sandbox {
	if s := b.record.Load(); s != nil {
		return s
	}
	return &sandbox.Sandbox{ID: b.id, Project: b.project}
}

// fileDone writes the event of a file call, with the counters. err is how the
// call failed, nil if it did not.
func (u *Use) fileDone(ctx context.Context, ev *sandbox.Event, err error) error {
	ctx, cancel := aside(ctx)
	defer cancel()
	ev.Duration = time.Since(ev.At)
	if err != nil {
		ev.OK, ev.Detail = false, reason(err)
	}
	dbErr := u.e.tally(ctx, u.b, func(s *sandbox.Sandbox) {
		switch ev.Type {
		case sandbox.EventUpload:
			s.BytesUploaded += ev.Bytes
		case sandbox.EventDownload:
			s.BytesDownloaded += ev.Bytes
		}
	}, func(tx store.Tx) error { return tx.Events().Append(ev) }, ev)
	if dbErr != nil {
		u.e.log.Error("a file transfer cannot be recorded", "sandbox", u.b.id, "type", ev.Type, "error", dbErr)
		return fault.Wrap(fault.Unavailable, dbErr, "it was done, and cannot be recorded")
	}
	return nil
}

// SearchFiles looks for lines of files, or for files, below a directory. dir is the
// directory as it was found.
func (e *Engine) SearchFiles(ctx context.Context, c access.Caller, ref, path string, o sandbox.SearchFilesOptions) (dir sandbox.FileInfo, found []sandbox.FileMatch, end sandbox.SearchEnd, err error) {
	u, err := e.fileUse(ctx, c, access.SandboxesRead, ref, &o.User, func(k *check.Fields) { k.Path("path", path) })
	if err != nil {
		return dir, nil, end, err
	}
	defer u.End()
	dir, found, end, err = u.l.client.Search(ctx, path, o)
	if err != nil {
		err = u.Fail(ctx, err)
	}
	return dir, found, end, err
}
