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
// Hostile code may have written it.
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
	var from *agent.Archive
	info, d, err := s.download(ctx, u, path, o.User, func(ctx context.Context) (info sandbox.FileInfo, _ io.ReadCloser, err error) {
		info, from, err = u.Client().Pack(ctx, path, o)
		return info, from, err
	})
	if err != nil {
		return sandbox.FileInfo{}, nil, err
	}
	return info, &Archive{d, from}, nil
}

// UnpackFiles makes files of a tar archive, below a directory; see [agent.Client.Unpack].
func (s *Service) UnpackFiles(ctx context.Context, c access.Caller, ref, path string, r io.Reader, o sandbox.UnpackFilesOptions) (sandbox.FilesPacked, error) {
	u, err := s.use(ctx, c, access.SandboxesWrite, ref, useFiles, &o.User, func(k *check.Fields) { k.Path("path", path) })
	if err != nil {
		return sandbox.FilesPacked{}, err
	}
	var sum sandbox.FilesPacked
	err = s.upload(ctx, u, path, o.User, r, func(ctx context.Context, r io.Reader) error {
		sum, err = u.Client().Unpack(ctx, path, r, o)
		return err
	})
	return sum, err
}
