// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
)

// StatusRequest asks what has changed in a repository.
type StatusRequest struct {
	At
	Untracked string // of UntrackedAll (as is ""), UntrackedNormal, UntrackedNo
}

// Which files that git does not know a status lists.
const (
	UntrackedAll    = "all"
	UntrackedNormal = "normal" // a directory that has no others stands for them
	UntrackedNo     = "no"
)

// Status is what has changed in a repository.
type Status struct {
	Root      string // the directory of the working tree, absolute
	Commit    string // empty: there is none yet
	Branch    string // empty: HEAD is detached
	Upstream  string // as origin/main; empty: the branch has none
	Ahead     int    // commits that the upstream has not
	Behind    int
	Published bool // the upstream is there
	Files     []FileStatus
	Truncated bool // there are more files
}

// Detached reports whether a commit is checked out, and no branch.
func (s *Status) Detached() bool { return s.Branch == "" }

// FileStatus is a file that differs.
type FileStatus struct {
	Path     string    // below the root; one that is not UTF-8 is escaped, as by the operations on files
	From     string    // where it was that was renamed or copied
	Index    FileState // how the index differs from the commit
	Worktree FileState // how the file differs from the index
	// Submodule: the path is a repository of its own, which was not looked into.
	Submodule bool
}

// FileState says how a file differs.
type FileState string

// The states.
const (
	Unmodified  FileState = "unmodified"
	Modified    FileState = "modified"
	TypeChanged FileState = "type_changed"
	Added       FileState = "added"
	Deleted     FileState = "deleted"
	Renamed     FileState = "renamed"
	Copied      FileState = "copied"
	Unmerged    FileState = "unmerged" // it conflicts
	Untracked   FileState = "untracked"
)

// Bounds of lists.
const (
	maxList  = 10_000
	maxBytes = 4 << 20
)

// Status returns what has changed. Of the configuration it starts no program but the filters of files that it has to compare.
func (s *Service) Status(ctx context.Context, c access.Caller, ref string, r StatusRequest) (Status, error) {
	var k check.Fields
	switch r.Untracked {
	case "":
		r.Untracked = UntrackedAll
	case UntrackedAll, UntrackedNormal, UntrackedNo:
	default:
		k.Bad("untracked", "%q is none of all, normal, no", shown(r.Untracked))
	}
	j, err := s.begin(&k, c, ref, r.At, "reading the status")
	if err != nil {
		return Status{}, err
	}
	out, err := j.run(ctx, command{
		args: []string{"status", "--porcelain=v2", "--branch", "-z", "--untracked-files=" + r.Untracked, "--ignore-submodules=dirty", "--ahead-behind", "--find-renames"},
		tree: true, most: maxBytes,
	})
	if err != nil {
		return Status{}, err
	}
	st := parseStatus(out.text, out.cut)
	top, err := j.run(ctx, command{args: []string{"rev-parse", "--show-toplevel"}, tree: true})
	if err != nil {
		return Status{}, err
	}
	st.Root = nameText(strings.TrimSuffix(top.text, "\n"))
	return st, nil
}
