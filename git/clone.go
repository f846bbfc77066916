// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// CloneRequest asks for a repository in a sandbox.
type CloneRequest struct {
	URL string // what [ReadAddress] takes
	// Path is the directory to clone into, which has to be empty or missing; relative to the workspace.
	// Empty: the name of the repository.
	Path    string
	User    string
	Branch  string        // or a tag; empty: the server's choice
	Commit  string        // to check out, at least 4 hexadecimal digits; empty: the branch's last
	Depth   int           // of history; 0: all of it
	Remote                // credentials within the address count, too
	Timeout time.Duration // zero: DefaultTimeout
	// Progress, if not nil, is called with what git prints.
	Progress func([]byte)
}

// Cloned is a repository that was cloned.
type Cloned struct {
	URL    string // without credentials
	Path   string // absolute
	Commit string // that is checked out; empty: the repository has none
	Branch string // empty: a commit is checked out, and no branch
}

const maxDepth = 1_000_000

var (
	commitID = regexp.MustCompile(`^[0-9a-fA-F]{4,64}$`)
	fullID   = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	// notInBranch is what git allows in no name of a branch or a tag.
	notInBranch = regexp.MustCompile(`^[-/.]|[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|/$|\.lock$|\.$`)
)

// clone is a request that was checked.
type clone struct {
	CloneRequest
	reach reach
}

func (r CloneRequest) check(k *check.Fields) *clone {
	cl := &clone{CloneRequest: r}
	a, user, password, err := ReadAddress(r.URL)
	k.Add(err)
	cl.reach = reach{a: &a, login: cl.read(k, user, password), ca: r.CA, insecure: r.InsecureTLS, name: "origin"}
	cl.reach.login.fits(k, "url", &a)
	if cl.Path == "" && err == nil {
		if cl.Path = a.dirName(); cl.Path == "" {
			k.Bad("path", "is missing, and the address ends in no plain name; say which directory to clone into")
		}
	}
	if r.Path != "" {
		k.Path("path", r.Path)
	}
	if strings.ContainsFunc(r.Path, unprintable) {
		k.Bad("path", "%q is not a valid path: it has a character that does not print", shown(r.Path))
	}
	if r.Branch != "" {
		checkBranch(k, "branch", r.Branch)
	}
	if r.Commit != "" && !commitID.MatchString(r.Commit) {
		k.Bad("commit", "%q is not a valid commit id: 4 to 64 hexadecimal digits", shown(r.Commit))
	}
	if r.Depth < 0 || r.Depth > maxDepth {
		k.Bad("depth", "%d is outside 1 to %d; leave it out for all of the history", r.Depth, maxDepth)
	}
	return cl
}

// Clone clones a repository into a directory of the sandbox. Where it cannot be checked out, what was
// cloned is removed again.
func (s *Service) Clone(ctx context.Context, c access.Caller, ref string, r CloneRequest) (Cloned, error) {
	var k check.Fields
	cl := r.check(&k)
	j, err := s.begin(&k, c, ref, At{User: r.User, Timeout: r.Timeout}, "cloning")
	if err != nil {
		return Cloned{}, err
	}
	if err := j.silence(ctx, &cl.reach); err != nil {
		return Cloned{}, err
	}
	args := []string{"clone", "--no-checkout", "--no-recurse-submodules"} // a filter of what is checked out is to see no login
	if cl.Branch != "" {
		args = append(args, "--branch", cl.Branch)
	}
	if cl.Depth > 0 {
		args = append(args, "--depth", strconv.Itoa(cl.Depth))
	}
	if _, err := j.run(ctx, cl.command(append(args, "--", cl.reach.a.Text, cl.Path)...)); err != nil {
		return Cloned{}, err
	}
	box, err := s.engine.Get(ctx, c, ref)
	if err != nil {
		return Cloned{}, err
	}
	out := Cloned{URL: cl.reach.a.Text, Path: box.Account.Absolute(cl.Path)}
	j.at.Path = out.Path
	if out.Commit, out.Branch, err = j.head(ctx); err != nil {
		return Cloned{}, err
	}
	switch {
	case cl.Commit != "":
		err = j.checkOutCommit(ctx, cl)
	case out.Commit != "":
		_, err = j.run(ctx, command{args: []string{"checkout", "--quiet", "HEAD", "--"}, hooks: true, tree: true, about: "checking out " + out.Commit})
	}
	if err == nil && cl.Commit != "" {
		out.Commit, out.Branch, err = j.head(ctx)
	}
	if err != nil {
		if out.Path != box.Account.Absolute(".") {
			actx, cancel := core.Aside(ctx)
			defer cancel()
			_ = s.files.RemoveFile(actx, c, ref, out.Path, sandbox.RemoveFileOptions{Recursive: true, User: r.User})
		}
		return Cloned{}, err
	}
	return out, nil
}

// checkOutCommit checks a commit out, which a clone with a depth may have to fetch first.
func (j *job) checkOutCommit(ctx context.Context, cl *clone) error {
	check := command{args: []string{"checkout", "--quiet", "--detach", cl.Commit, "--"}, hooks: true, tree: true, about: "checking out " + cl.Commit}
	_, err := j.run(ctx, check)
	if reason := fault.ReasonOf(err); err == nil || cl.Depth == 0 || reason != ReasonNoCommit && reason != ReasonNoPath {
		return err
	}
	fetch := cl.command("fetch", "--quiet", "--no-recurse-submodules", "--depth", strconv.Itoa(cl.Depth), "origin", cl.Commit)
	fetch.about = "fetching " + cl.Commit
	if _, ferr := j.run(ctx, fetch); ferr != nil {
		return ferr
	}
	_, err = j.run(ctx, check)
	return err
}

// command returns one that may reach the repository's server.
func (cl *clone) command(args ...string) command {
	cmd := command{args: args, reach: &cl.reach}
	if cl.Progress != nil {
		cmd.sink = func(f sandbox.Frame) { cl.Progress(f.Data) }
	}
	return cmd
}
