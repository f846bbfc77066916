// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
)

// BranchesRequest asks for the branches of a repository.
type BranchesRequest struct {
	At
	Remote bool // also what is known of the branches of remotes
}

// Branch is one branch.
type Branch struct {
	Name     string // as main, or origin/main of a remote
	Remote   bool
	Commit   string
	Upstream string    // empty: it has none
	Current  bool      // it is checked out
	At       time.Time // of the commit; zero where its date is not one
}

// BranchList is the branches of a repository.
type BranchList struct {
	Branches  []Branch
	Current   string // empty: HEAD is detached. It need not be in the list: a branch without a commit is not
	Truncated bool
}

// CreateBranchRequest asks for a branch.
type CreateBranchRequest struct {
	At
	Name     string
	Start    string // the revision that it starts at; empty: HEAD
	Force    bool   // move one that is there
	Checkout bool
}

// DeleteBranchRequest asks that a branch be gone.
type DeleteBranchRequest struct {
	At
	Name  string
	Force bool // also with commits that are in no other
}

// Branches lists branches, by name.
func (s *Service) Branches(ctx context.Context, c access.Caller, ref string, r BranchesRequest) (BranchList, error) {
	var k check.Fields
	j, err := s.begin(&k, c, ref, r.At, "listing branches")
	if err != nil {
		return BranchList{}, err
	}
	args := []string{"for-each-ref", "--format=%(refname)%00%(objectname)%00%(HEAD)%00%(upstream)%00%(committerdate:iso-strict)%00%(symref)", "refs/heads"}
	if r.Remote {
		args = append(args, "refs/remotes")
	}
	out, err := j.run(ctx, command{args: args, most: maxBytes})
	if err != nil {
		return BranchList{}, err
	}
	l := parseBranches(out.text, out.cut)
	if l.Current == "" {
		if l.Current, err = j.branch(ctx); err != nil && fault.ReasonOf(err) != ReasonDetached {
			return BranchList{}, err
		}
	}
	return l, nil
}

// branch returns the branch that is checked out, which need not have a commit.
func (j *job) branch(ctx context.Context) (string, error) {
	out, err := j.run(ctx, command{args: []string{"rev-parse", "--git-dir"}, about: "reading HEAD"}) // it says whether there is a repository
	if err != nil {
		return "", err
	}
	out, err = j.run(ctx, command{args: []string{"symbolic-ref", "--quiet", "HEAD"}})
	name, ok := strings.CutPrefix(strings.TrimSuffix(out.text, "\n"), "refs/heads/")
	if err != nil && fault.Of(err) != fault.State {
		return "", err
	}
	if err != nil || !ok {
		return "", j.told(meaning{ReasonDetached, fault.State, "name a branch, or check one out"}, "no branch is checked out")
	}
	return nameText(name), nil
}

// CreateBranch makes a branch.
func (s *Service) CreateBranch(ctx context.Context, c access.Caller, ref string, r CreateBranchRequest) (Branch, error) {
	var k check.Fields
	checkBranch(&k, "name", r.Name)
	checkRevision(&k, "start", r.Start)
	j, err := s.begin(&k, c, ref, r.At, "making the branch "+shown(r.Name))
	if err != nil {
		return Branch{}, err
	}
	args := []string{"branch"}
	if r.Checkout {
		args = []string{"checkout", "--quiet", "-b"}
		if r.Force {
			args[2] = "-B"
		}
	} else if r.Force {
		args = append(args, "--force")
	}
	args = append(args, r.Name)
	if r.Start != "" {
		args = append(args, r.Start)
	}
	if r.Checkout {
		args = append(args, "--")
	}
	if _, err := j.run(ctx, command{args: args, hooks: r.Checkout, tree: r.Checkout}); err != nil {
		return Branch{}, err
	}
	b := Branch{Name: r.Name, Current: r.Checkout}
	out, err := j.run(ctx, command{args: []string{"rev-parse", "--verify", "--quiet", "refs/heads/" + r.Name}})
	if id := strings.TrimSpace(out.text); err == nil && fullID.MatchString(id) {
		b.Commit = id
	}
	return b, nil
}

// DeleteBranch deletes a branch.
func (s *Service) DeleteBranch(ctx context.Context, c access.Caller, ref string, r DeleteBranchRequest) error {
	var k check.Fields
	checkBranch(&k, "name", r.Name)
	j, err := s.begin(&k, c, ref, r.At, "deleting the branch "+shown(r.Name))
	if err != nil {
		return err
	}
	how := "-d"
	if r.Force {
		how = "-D"
	}
	_, err = j.run(ctx, command{args: []string{"branch", "--quiet", how, "--", r.Name}})
	return err
}

// parseBranches reads lines of six fields, of for-each-ref.
func parseBranches(text string, cut bool) BranchList {
	l := BranchList{Truncated: cut}
	for line := range strings.Lines(text) {
		line, whole := strings.CutSuffix(line, "\n")
		f := strings.Split(line, "\x00")
		if !whole || len(f) != 6 || !fullID.MatchString(f[1]) || f[5] != "" { // another name for a branch is none
			continue
		}
		b := Branch{Commit: f[1], Current: f[2] == "*"}
		switch {
		case strings.HasPrefix(f[0], "refs/heads/"):
			b.Name = nameText(f[0][len("refs/heads/"):])
		case strings.HasPrefix(f[0], "refs/remotes/"):
			b.Name, b.Remote = nameText(f[0][len("refs/remotes/"):]), true
		}
		if b.Name == "" {
			continue
		}
		b.Upstream = nameText(strings.TrimPrefix(strings.TrimPrefix(f[3], "refs/remotes/"), "refs/heads/"))
		b.At = date(f[4])
		if b.Current {
			l.Current = b.Name
		}
		if len(l.Branches) == maxList {
			l.Truncated = true
			break
		}
		l.Branches = append(l.Branches, b)
	}
	return l
}

// date reads a date of git's, zero where it is none that others can write.
func date(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}
