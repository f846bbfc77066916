// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
)

// AddRequest asks that files be in the next commit.
type AddRequest struct {
	At
	Files []string // paths as they are, no patterns; a directory is all that is in it
	All   bool     // all that has changed, and no Files
	Force bool     // also what is ignored
}

// Add adds files, and what was deleted of them, to the index.
func (s *Service) Add(ctx context.Context, c access.Caller, ref string, r AddRequest) error {
	var k check.Fields
	checkFiles(&k, "files", r.Files)
	if r.All == (len(r.Files) > 0) {
		k.Bad("files", "or all has to be given, and not both")
	}
	j, err := s.begin(&k, c, ref, r.At, "adding files")
	if err != nil {
		return err
	}
	cmd := command{args: []string{"add"}, tree: true, hooks: false}
	if r.Force {
		cmd.args = append(cmd.args, "--force")
	}
	if r.All {
		cmd.args = append(cmd.args, "--all")
	} else {
		cmd.args, cmd.stdin = append(cmd.args, pathOptions()...), pathInput(r.Files)
	}
	_, err = j.run(ctx, cmd)
	return err
}
