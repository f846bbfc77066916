// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"slices"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
)

// ResetRequest asks that a branch be at another commit, or that files be in the index as they are there.
type ResetRequest struct {
	At
	Mode   string   // of ResetModes; empty: mixed
	Target string   // a revision; empty: HEAD
	Files  []string // these in the index, and the branch stays; only with the mode mixed
}

// ResetModes returns the modes: what becomes of the index and the working tree.
func ResetModes() []string { return []string{"soft", "mixed", "hard", "merge", "keep"} }

// Reset resets a branch, or files of the index.
func (s *Service) Reset(ctx context.Context, c access.Caller, ref string, r ResetRequest) (CheckedOut, error) {
	var k check.Fields
	checkRevision(&k, "target", r.Target)
	checkFiles(&k, "files", r.Files)
	if r.Mode != "" && !slices.Contains(ResetModes(), r.Mode) {
		k.Bad("mode", "%q is none of %s", shown(r.Mode), "soft, mixed, hard, merge, keep")
	}
	if len(r.Files) > 0 && r.Mode != "" && r.Mode != "mixed" {
		k.Bad("files", "go with the mode mixed alone; restore changes files")
	}
	j, err := s.begin(&k, c, ref, r.At, "resetting")
	if err != nil {
		return CheckedOut{}, err
	}
	cmd := command{args: []string{"reset", "--quiet"}, tree: true}
	if r.Target == "" {
		r.Target = "HEAD"
	}
	if len(r.Files) > 0 {
		cmd.args, cmd.stdin = append(append(cmd.args, pathOptions()...), r.Target), pathInput(r.Files)
	} else {
		if r.Mode == "" {
			r.Mode = "mixed"
		}
		cmd.args = append(cmd.args, "--"+r.Mode, r.Target, "--")
	}
	if _, err := j.run(ctx, cmd); err != nil {
		return CheckedOut{}, err
	}
	var out CheckedOut
	out.Commit, out.Branch, err = j.head(ctx)
	return out, err
}
