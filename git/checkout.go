// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
)

// CheckoutRequest asks for another branch or commit in the working tree.
type CheckoutRequest struct {
	At
	// Target is a branch, or with Detach any revision. A branch that only one remote has is made here.
	Target    string
	Create    bool   // make the branch
	Start     string // with Create: the revision that it starts at; empty: HEAD
	Detach    bool   // check the commit out, and no branch
	Force     bool   // changes that are in no commit are lost
	SkipHooks bool
}

// CheckedOut is what a working tree has.
type CheckedOut struct {
	Commit string // empty: there is none yet
	Branch string // empty: HEAD is detached
}

// Checkout checks a branch or a commit out. The hooks of the repository run as for a person who types it.
func (s *Service) Checkout(ctx context.Context, c access.Caller, ref string, r CheckoutRequest) (CheckedOut, error) {
	var k check.Fields
	if r.Create && r.Detach {
		k.Bad("detach", "and create are both given; send one of them")
	}
	if r.Start != "" && !r.Create {
		k.Bad("start", "goes with create")
	}
	checkRevision(&k, "start", r.Start)
	switch {
	case r.Create:
		checkBranch(&k, "target", r.Target)
	case r.Target == "":
		k.Bad("target", "is empty; name a branch or a commit")
	default:
		checkRevision(&k, "target", r.Target)
	}
	j, err := s.begin(&k, c, ref, r.At, "checking out "+shown(r.Target))
	if err != nil {
		return CheckedOut{}, err
	}
	args := []string{"checkout", "--quiet"}
	if r.Force {
		args = append(args, "--force")
	}
	switch {
	case r.Create:
		args = append(args, "-b", r.Target)
		if r.Start != "" {
			args = append(args, r.Start)
		}
	case r.Detach:
		args = append(args, "--detach", r.Target)
	default:
		args = append(args, r.Target)
	}
	_, err = j.run(ctx, command{args: append(args, "--"), tree: true, hooks: !r.SkipHooks})
	if reason := fault.ReasonOf(err); !r.Create && !r.Detach && (reason == ReasonNoCommit || reason == ReasonNoPath) {
		e := *fault.As(err)
		e.Code, e.Reason, e.Remedy = noBranch.code, noBranch.reason, noBranch.remedy
		err = &e
	}
	if err != nil {
		return CheckedOut{}, err
	}
	var out CheckedOut
	out.Commit, out.Branch, err = j.head(ctx)
	return out, err
}
