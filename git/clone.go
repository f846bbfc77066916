// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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
	Path   string
	Branch string // or a tag; empty: the server's choice
	Commit string // to check out, at least 4 hexadecimal digits; empty: the branch's last
	Depth  int    // of history; 0: all of it
	// Username and Password, or Token, are for a server that asks by HTTP who one is.
	Username, Password, Token string
	Timeout                   time.Duration // zero: DefaultTimeout
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
	a     Address
	login login
}

func (r CloneRequest) check(most time.Duration) (*clone, error) {
	cl := &clone{CloneRequest: r}
	var k check.Fields
	a, user, password, err := ReadAddress(r.URL)
	k.Add(err)
	cl.a = a
	cl.login = r.login(&k, &a, user, password)
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
	if r.Branch != "" && (len(r.Branch) > maxName || !utf8.ValidString(r.Branch) || notInBranch.MatchString(r.Branch)) {
		k.Bad("branch", "%q is not a valid branch name", shown(r.Branch))
	}
	if r.Commit != "" && !commitID.MatchString(r.Commit) {
		k.Bad("commit", "%q is not a valid commit id: 4 to 64 hexadecimal digits", shown(r.Commit))
	}
	if r.Depth < 0 || r.Depth > maxDepth {
		k.Bad("depth", "%d is outside 1 to %d; leave it out for all of the history", r.Depth, maxDepth)
	}
	k.Timeout("timeout_seconds", r.Timeout, most)
	return cl, k.Err()
}

// Clone clones a repository into a directory of the sandbox, as the sandbox's user. Where a commit cannot
// be checked out, what was cloned is removed again.
func (s *Service) Clone(ctx context.Context, c access.Caller, ref string, r CloneRequest) (Cloned, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return Cloned{}, err
	}
	cl, err := r.check(s.engine.MostCommandTime())
	if err != nil {
		return Cloned{}, err
	}
	args := []string{"clone"}
	if cl.Branch != "" {
		args = append(args, "--branch", cl.Branch)
	}
	if cl.Depth > 0 {
		args = append(args, "--depth", strconv.Itoa(cl.Depth))
	}
	if cl.Commit != "" {
		args = append(args, "--no-checkout")
	}
	if _, err := s.run(ctx, c, ref, cl.command("", append(args, "--", cl.a.Text, cl.Path)...), "cloning"); err != nil {
		return Cloned{}, err
	}
	out := Cloned{URL: cl.a.Text, Path: cl.Path}
	if !path.IsAbs(out.Path) {
		out.Path = path.Join(sandbox.Workspace, out.Path)
	}
	out.Path = path.Clean(out.Path)
	if cl.Commit != "" {
		if err := s.checkOut(ctx, c, ref, cl, out.Path); err != nil {
			if out.Path != sandbox.Workspace {
				actx, cancel := core.Aside(ctx)
				defer cancel()
				_ = s.files.RemoveFile(actx, c, ref, out.Path, sandbox.RemoveFileOptions{Recursive: true})
			}
			return Cloned{}, err
		}
	}
	head := command{args: []string{"rev-parse", "HEAD", "--abbrev-ref", "HEAD"}, dir: out.Path}
	if text, err := s.run(ctx, c, ref, head, "reading what was cloned"); err == nil {
		commit, branch, _ := strings.Cut(strings.TrimSpace(text), "\n")
		if fullID.MatchString(commit) {
			out.Commit = commit
		}
		if branch != "HEAD" && len(branch) <= maxName && !notInBranch.MatchString(branch) {
			out.Branch = printable(branch)
		}
	} else if fault.Of(err) != fault.State {
		return Cloned{}, err
	} // else it has no commit yet
	return out, nil
}

// checkOut checks a commit out, which a clone with a depth may have to fetch first.
func (s *Service) checkOut(ctx context.Context, c access.Caller, ref string, cl *clone, dir string) error {
	doing := "checking out " + cl.Commit
	args := []string{"checkout", "--quiet", "--detach", cl.Commit}
	_, err := s.run(ctx, c, ref, cl.command(dir, args...), doing)
	if err == nil || cl.Depth == 0 || fault.Of(err) != fault.State {
		return err
	}
	if _, ferr := s.run(ctx, c, ref, cl.command(dir, "fetch", "--quiet", "--depth", strconv.Itoa(cl.Depth), "origin", cl.Commit), "fetching "+cl.Commit); ferr != nil {
		return ferr
	}
	_, err = s.run(ctx, c, ref, cl.command(dir, args...), doing)
	return err
}

// command returns one that may reach the repository's server.
func (cl *clone) command(dir string, args ...string) command {
	cmd := command{args: args, dir: dir, login: cl.login, a: &cl.a, time: cl.Timeout}
	if cl.Progress != nil {
		cmd.sink = func(f sandbox.Frame) { cl.Progress(f.Data) }
	}
	return cmd
}
