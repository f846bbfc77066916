// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
)

// RestoreRequest asks that files be as they were.
type RestoreRequest struct {
	At
	Files    []string // paths as they are, no patterns; a directory is all that is in it
	Staged   bool     // in the index
	Worktree bool     // in the working tree; neither means this
	Source   string   // a revision; empty: the index, or HEAD with Staged
}

// Restore restores files.
func (s *Service) Restore(ctx context.Context, c access.Caller, ref string, r RestoreRequest) error {
	var k check.Fields
	checkFiles(&k, "files", r.Files)
	if len(r.Files) == 0 {
		k.Bad("files", "is empty; name what is to be restored")
	}
	checkRevision(&k, "source", r.Source)
	j, err := s.begin(&k, c, ref, r.At, "restoring files")
	if err != nil {
		return err
	}
	args := []string{"restore", "--quiet"}
	if r.Staged {
		args = append(args, "--staged")
	}
	if r.Worktree || !r.Staged {
		args = append(args, "--worktree")
	}
	if r.Source != "" {
		args = append(args, "--source="+r.Source)
	}
	_, err = j.run(ctx, command{args: append(args, pathOptions()...), stdin: pathInput(r.Files), tree: true})
	return err
}
