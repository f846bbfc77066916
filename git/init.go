// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
)

// InitRequest asks for an empty repository. Its path is made if it is missing.
type InitRequest struct {
	At
	Branch string // the first one; empty: what the configuration says
	Bare   bool   // without a working tree
}

// Initialized is a repository that is there.
type Initialized struct {
	Existed bool // it was there before
	Branch  string
}

// Init makes a repository. One that is there stays as it is.
func (s *Service) Init(ctx context.Context, c access.Caller, ref string, r InitRequest) (Initialized, error) {
	var k check.Fields
	if r.Branch != "" {
		checkBranch(&k, "branch", r.Branch)
	}
	j, err := s.begin(&k, c, ref, r.At, "making a repository")
	if err != nil {
		return Initialized{}, err
	}
	args := []string{"init"}
	if r.Bare {
		args = append(args, "--bare")
	}
	if r.Branch != "" {
		args = append(args, "--initial-branch="+r.Branch)
	}
	dir := j.at.Path
	if j.at.Path = ""; dir == "" {
		dir = "."
	}
	out, err := j.run(ctx, command{args: append(args, "--", dir)})
	if err != nil {
		return Initialized{}, err
	}
	j.at.Path = dir
	i := Initialized{Existed: strings.HasPrefix(out.text, "Reinitialized ")}
	i.Branch, err = j.branch(ctx)
	return i, err
}
