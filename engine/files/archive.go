// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"io"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/sandbox"
)

// Archive is a tar archive that is being read. Sum reports what it holds once Read has returned io.EOF.
// It is the sandbox's word, as its files are.
type Archive struct {
	*download
	from *agent.Archive
}

// Sum reports what the archive holds.
func (a *Archive) Sum() sandbox.FilesPacked { return a.from.Sum() }

// PackFiles opens a file or a tree as a tar archive; see [agent.Client.Pack]. Close it: the event with
// the bytes that it gave is written then. It ends when ctx does, or the engine.
func (s *Service) PackFiles(ctx context.Context, c access.Caller, ref, path string, o sandbox.PackFilesOptions) (sandbox.FileInfo, *Archive, error) {
	u, err := s.use(ctx, c, access.SandboxesRead, ref, useFiles, &o.User, func(k *check.Fields) { k.Path("path", path) })
	if err != nil {
		return sandbox.FileInfo{}, nil, err
	}
	if err := s.engine.Store().Room(); err != nil { // for its event
		u.End()
		return sandbox.FileInfo{}, nil, err
	}
	ev := newEvent(u, sandbox.EventDownload, path, o.User)
	rctx, cancel := s.engine.Bind(ctx)
	info, from, err := u.Client().Pack(rctx, path, o)
	if err != nil {
		err = u.Fail(ctx, err)
		record(ctx, u, ev, err)
		cancel()
		u.End()
		return sandbox.FileInfo{}, nil, err
	}
	ectx := context.WithoutCancel(ctx)
	d := &download{ReadCloser: from}
	d.over = func(n int64, err error) {
		ev.Bytes = n
		_ = record(ectx, u, ev, err) // logged; the bytes are delivered
		cancel()
		u.End()
	}
	context.AfterFunc(rctx, func() { _ = d.Close() })
	return info, &Archive{d, from}, nil
}

// UnpackFiles makes files of a tar archive, below a directory; see [agent.Client.Unpack].
func (s *Service) UnpackFiles(ctx context.Context, c access.Caller, ref, path string, r io.Reader, o sandbox.UnpackFilesOptions) (sandbox.FilesPacked, error) {
	u, err := s.use(ctx, c, access.SandboxesWrite, ref, useFiles, &o.User, func(k *check.Fields) { k.Path("path", path) })
	if err != nil {
		return sandbox.FilesPacked{}, err
	}
	defer u.End()
	ev := newEvent(u, sandbox.EventUpload, path, o.User)
	bound, cancel := s.engine.Bind(ctx)
	defer cancel()
	count := &counted{r: r}
	sum, err := u.Client().Unpack(bound, path, count, o)
	ev.Bytes = count.n
	if err != nil {
		err = u.Fail(ctx, err)
	}
	if dbErr := record(ctx, u, ev, err); err == nil {
		err = dbErr
	}
	return sum, err
}
