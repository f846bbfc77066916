// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"slices"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// PullRequest asks for what a server has.
type PullRequest struct {
	At
	Remote
	Name      string // of the remote; empty: that of the branch's upstream, or origin
	URL       string // that the remote has to be at; empty: anywhere
	Branch    string // at the server; empty: the upstream's, or one of the same name
	Mode      string // of PullModes; empty: merge
	SkipHooks bool
	Progress  func([]byte)
}

// PullModes returns how what was fetched is brought together with the branch. A merge need not be one where
// the branch has nothing of its own.
func PullModes() []string { return []string{"merge", "rebase", "ff_only"} }

// Pulled is what a pull did.
type Pulled struct {
	Remote string
	URL    string // without credentials
	Branch string // at the server
	Before string // the commit that was checked out, empty: none
	Commit string // that is now
}

// Pull fetches a branch and merges it, or rebases upon it. Two commands do it: the one that fetches has the
// credentials, and changes no file; the one that merges, which runs filters and hooks, has none. Conflicts
// of a merge stay in the files, to be resolved; a rebase that conflicts is undone.
func (s *Service) Pull(ctx context.Context, c access.Caller, ref string, r PullRequest) (Pulled, error) {
	var k check.Fields
	if r.Name != "" {
		checkRemote(&k, "remote", r.Name)
	}
	if r.Branch != "" {
		checkBranch(&k, "branch", r.Branch)
	}
	if r.Mode != "" && !slices.Contains(PullModes(), r.Mode) {
		k.Bad("mode", "%q is none of merge, rebase, ff_only", shown(r.Mode))
	}
	url, user, password := checkURL(&k, r.URL)
	l := r.read(&k, user, password)
	j, err := s.begin(&k, c, ref, r.At, "pulling")
	if err != nil {
		return Pulled{}, err
	}
	if err := j.whence(ctx, &r); err != nil {
		return Pulled{}, err
	}
	from, err := j.remote(ctx, r.Name, url, false, &r.Remote, l)
	if err != nil {
		return Pulled{}, err
	}
	p := Pulled{Remote: r.Name, URL: from.a.Text, Branch: r.Branch}
	if p.Before, _, err = j.head(ctx); err != nil {
		return p, err
	}
	fetch := command{args: []string{"fetch", "--quiet", "--no-recurse-submodules", "--", r.Name, "refs/heads/" + r.Branch}, reach: from, tree: true}
	if r.Progress != nil {
		fetch.sink = func(f sandbox.Frame) { r.Progress(f.Data) }
	}
	if _, err := j.run(ctx, fetch); err != nil {
		return p, err
	}
	join := command{args: []string{"merge", "--quiet", "--no-edit", "--ff", "FETCH_HEAD"}, tree: true, hooks: !r.SkipHooks}
	switch r.Mode {
	case "ff_only":
		join.args = []string{"merge", "--quiet", "--ff-only", "FETCH_HEAD"}
	case "rebase":
		join.args = []string{"rebase", "--quiet", "FETCH_HEAD"}
	}
	if _, err := j.run(ctx, join); err != nil {
		if r.Mode == "rebase" && fault.ReasonOf(err) == ReasonConflict {
			actx, cancel := core.Aside(ctx)
			defer cancel()
			_, _ = j.run(actx, command{args: []string{"rebase", "--abort"}, tree: true})
			err = fault.As(err).WithRemedy("the rebase was undone; pull with mode merge, and resolve the conflicts in the files")
		}
		return p, err
	}
	p.Commit, _, err = j.head(ctx)
	return p, err
}

// whence fills in what a request does not say: what the branch's upstream is.
func (j *job) whence(ctx context.Context, r *PullRequest) error {
	if r.Name != "" && r.Branch != "" {
		return nil
	}
	local, err := j.branch(ctx)
	if err != nil {
		if r.Branch == "" || fault.ReasonOf(err) != ReasonDetached {
			return err
		}
		r.Name = DefaultRemote
		return nil
	}
	out, err := j.run(ctx, command{args: []string{"for-each-ref", "--format=%(upstream:remotename)%00%(upstream:remoteref)", "--", "refs/heads/" + local}})
	if err != nil {
		return err
	}
	name, branch, _ := strings.Cut(strings.TrimSuffix(out.text, "\n"), "\x00")
	branch = strings.TrimPrefix(branch, "refs/heads/")
	known := remoteName.MatchString(name) && branch != "" && !notInBranch.MatchString(branch)
	switch {
	case r.Name == "" && known:
		r.Name = name
	case r.Name == "":
		r.Name = DefaultRemote
	}
	if r.Branch == "" {
		if r.Branch = local; known && r.Name == name {
			r.Branch = branch
		}
	}
	return nil
}
