// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"fmt"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/sandbox"
)

// ChangeFile changes mode, owner, group and attributes of a file or of a tree; see [agent.Client.Change].
func (s *Service) ChangeFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.ChangeFileOptions) (sandbox.FileChanged, error) {
	var out sandbox.FileChanged
	err := s.change(ctx, c, ref, sandbox.EventFileChange, path, "", &o.User, func(ctx context.Context, cl *agent.Client) (err error) {
		out, err = cl.Change(ctx, path, o)
		return err
	})
	return out, err
}

// ReplaceInFiles replaces text in files, and returns what became of each; see [agent.Client.Replace]. All of it is
// one event.
func (s *Service) ReplaceInFiles(ctx context.Context, c access.Caller, ref string, files []string, o sandbox.ReplaceFilesOptions) ([]sandbox.FileReplaced, error) {
	u, err := s.use(ctx, c, access.SandboxesWrite, ref, useFiles, &o.User, func(k *check.Fields) {
		size := 0
		for _, f := range files {
			k.Path("files", f)
			size += len(f)
		}
		switch {
		case len(files) == 0 || len(files) > MaxReplaceFiles:
			k.Bad("files", "has %d paths; 1 to %d are replaced in at a time", len(files), MaxReplaceFiles)
		case size > maxReplacePaths:
			k.Bad("files", "the paths have %d bytes together, more than %d", size, maxReplacePaths)
		}
	})
	if err != nil {
		return nil, err
	}
	defer u.End()
	bound, cancel := s.engine.Bind(ctx)
	defer cancel()
	begun := newEvent(u, sandbox.EventFileReplace, files[0], o.User)
	done, err := u.Client().Replace(bound, files, o)
	if err != nil {
		err = u.Fail(ctx, err)
	}
	changed := 0
	for _, f := range done {
		if f.Count > 0 {
			changed++
		}
	}
	begun.Detail = fmt.Sprintf("%d of %d files changed", changed, len(files))
	if dbErr := record(ctx, u, begun, err); err == nil {
		err = dbErr
	}
	return done, err
}

// Bounds of a replacement, as the agent has them.
const (
	MaxReplaceFiles = 1000
	maxReplacePaths = 256 << 10
)
