// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package points has the verbs about files of disks at points in time: of snapshots, of images, and of sandboxes as they are,
// up or down. It reads them from outside, starts nothing, uses no sandbox and changes nothing. It stands above the
// engine, and knows no coat.
//
// Nobody's rights inside matter: who may read a sandbox of the project may read all of its disk, as by an export of the
// snapshot.
package points

import (
	"context"
	"io"
	"path"
	"strings"
	"sync"

	"sandpit.dev/access"
	"sandpit.dev/agent/wire"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Engine is what the package asks of the engine; *engine.Engine has it.
type Engine interface {
	Enter(ctx context.Context, c access.Caller, scope access.Scope) (bound context.Context, leave func(), err error)
	View(ctx context.Context, c access.Caller, of, at string) (runtime.View, error)
}

// Service is the verbs. All its methods are safe for concurrent use.
//
// A point is named as for a comparison: a snapshot, "base" or "now", of the sandbox of; or with of empty a snapshot by itself.
// Paths are absolute, or relative to the workspace, and escaped as those of files inside are.
type Service struct {
	engine Engine
	diffs  chan struct{} // held by who compares texts
}

// diffsAtOnce bounds the comparisons of texts, which take the server's own processors and memory.
const diffsAtOnce = 2

// New returns the verbs above an engine.
func New(e Engine) *Service {
	return &Service{engine: e, diffs: make(chan struct{}, diffsAtOnce)}
}

// view begins a verb: it ends with done, which is called once.
func (s *Service) view(ctx context.Context, c access.Caller, of, at string) (bound context.Context, v runtime.View, done func(), err error) {
	bound, leave, err := s.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return nil, nil, nil, err
	}
	if v, err = s.engine.View(bound, c, of, at); err != nil {
		leave()
		return nil, nil, nil, err
	}
	return bound, v, func() {
		_ = v.Close() // it was read
		leave()
	}, nil
}

// inside is a path as a disk has it.
func inside(field, p string) (string, error) {
	var k check.Fields
	k.Path(field, p)
	if err := k.Err(); err != nil {
		return "", err
	}
	if !path.IsAbs(p) {
		p = sandbox.Workspace + "/" + p
	}
	return wire.UnescapeName(p), nil
}

// escaped is a file as callers are told of it.
func escaped(f sandbox.FileInfo) sandbox.FileInfo {
	f.Name, f.Path, f.Target = wire.EscapeName(f.Name), wire.EscapeName(f.Path), wire.EscapeName(f.Target)
	return f
}

// Stat describes what is at a path; a link is not followed.
func (s *Service) Stat(ctx context.Context, c access.Caller, of, at, p string) (sandbox.FileInfo, error) {
	p, err := inside("path", p)
	if err != nil {
		return sandbox.FileInfo{}, err
	}
	ctx, v, done, err := s.view(ctx, c, of, at)
	if err != nil {
		return sandbox.FileInfo{}, err
	}
	defer done()
	f, err := v.Stat(ctx, p)
	return escaped(f), err
}

// Bounds of a list.
const (
	DefaultList = 1000
	MaxList     = 10_000
	maxListing  = 4 << 20 // bytes
	fileBytes   = 160     // of an entry, beside its text
)

// List returns what is in a directory, in the order of the names: at most limit entries, zero for DefaultList, whose names come
// after one. more reports that there are more.
func (s *Service) List(ctx context.Context, c access.Caller, of, at, p, after string, limit int) (entries []sandbox.FileInfo, more bool, err error) {
	if limit == 0 {
		limit = DefaultList
	}
	if limit < 1 || limit > MaxList {
		return nil, false, fault.InvalidField("limit", "%d is outside 1 to %d", limit, MaxList)
	}
	if p, err = inside("path", p); err != nil {
		return nil, false, err
	}
	ctx, v, done, err := s.view(ctx, c, of, at)
	if err != nil {
		return nil, false, err
	}
	defer done()
	_, entries, more, err = v.List(ctx, p, wire.UnescapeName(after), limit)
	held := 0
	for i := range entries {
		f := escaped(entries[i])
		if held += fileBytes + len(f.Name) + len(f.Path) + len(f.Target); held > maxListing && i > 0 {
			return entries[:i], true, nil
		}
		entries[i] = f
	}
	return entries, more, err
}

// Read opens a file. The reader ends when ctx does, or the engine, and is closed by the caller.
func (s *Service) Read(ctx context.Context, c access.Caller, of, at, p string) (sandbox.FileInfo, io.ReadSeekCloser, error) {
	p, err := inside("path", p)
	if err != nil {
		return sandbox.FileInfo{}, nil, err
	}
	bound, v, done, err := s.view(ctx, c, of, at)
	if err != nil {
		return sandbox.FileInfo{}, nil, err
	}
	info, r, err := v.Open(bound, p)
	if err != nil {
		done()
		return sandbox.FileInfo{}, nil, err
	}
	f := &file{ReadSeekCloser: r, done: done}
	context.AfterFunc(bound, func() { _ = f.Close() })
	return escaped(info), f, nil
}

// file is a file that is read. Its end is that of the verb.
type file struct {
	io.ReadSeekCloser
	once sync.Once
	done func()
	err  error
}

func (f *file) Close() error {
	f.once.Do(func() {
		f.err = f.ReadSeekCloser.Close()
		f.done()
	})
	return f.err
}

// cut cuts what is shown of an error's path.
func cut(p string) string { return sandbox.Clip(strings.ToValidUTF8(p, "?"), 200) }
