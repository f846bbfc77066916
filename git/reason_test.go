// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/git"
)

// TestFailuresHaveReasons has git fail in every way that it has a word for.
func TestFailuresHaveReasons(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.run(identity)
	at := git.At{Path: "app"}
	h.clone(git.CloneRequest{URL: h.url + "/app.git", Remote: login()})
	h.run(`git clone -q app other && cd app && git branch own && git branch diverged HEAD~0
git checkout -q diverged && echo theirs >f && git commit -qam theirs && git branch theirs && git reset -q --hard HEAD~1 && echo mine >f && git commit -qam mine && git checkout -q main
git remote add inside ../other && git remote add nowhere ../nothing && git remote add far http://git.invalid/x && git remote add gone ` + h.url + `/gone.git
git remote add program 'ext::sh -c id' && git config core.logAllRefUpdates true`)
	// The server has a commit that this clone has not.
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	h.host("", "clone", "-q", h.bare, elsewhere)
	if err := os.WriteFile(filepath.Join(elsewhere, "f"), []byte("three\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.host(elsewhere, "commit", "-qam", "three")
	h.host(elsewhere, "push", "-q", "origin", "main")

	wrong := login()
	wrong.Password += "x"
	do := func(err error) error { return err }
	push := func(r git.PushRequest) error {
		r.At = at
		_, err := h.git.Push(t.Context(), alice, h.box, r)
		return err
	}
	pull := func(r git.PullRequest) error {
		r.At = at
		_, err := h.git.Pull(t.Context(), alice, h.box, r)
		return err
	}
	checkout := func(r git.CheckoutRequest) error {
		r.At = at
		_, err := h.git.Checkout(t.Context(), alice, h.box, r)
		return err
	}
	commit := func(r git.CommitRequest) error {
		r.At, r.Message = at, "x"
		_, err := h.git.Commit(t.Context(), alice, h.box, r)
		return err
	}
	reset := func(r git.ResetRequest) error {
		r.At = at
		_, err := h.git.Reset(t.Context(), alice, h.box, r)
		return err
	}
	clone := func(r git.CloneRequest) error {
		_, err := h.git.Clone(t.Context(), alice, h.box, r)
		return err
	}
	ctx := t.Context()
	for _, c := range []struct {
		name   string
		before string
		run    func() error
		code   fault.Code
		reason string
		says   string
	}{
		{"clone without credentials", "", func() error { return clone(git.CloneRequest{URL: h.url + "/app.git", Path: "x"}) }, fault.State, git.ReasonCredentials, ""},
		{"clone with a wrong password", "", func() error { return clone(git.CloneRequest{URL: h.url + "/app.git", Path: "x", Remote: wrong}) }, fault.State, git.ReasonCredentials, ""},
		{"clone of nothing", "", func() error { return clone(git.CloneRequest{URL: h.url + "/nothing.git", Path: "x", Remote: login()}) }, fault.NotFound, git.ReasonNoRepository, ""},
		{"clone of no path", "", func() error { return clone(git.CloneRequest{URL: "./nothing", Path: "x"}) }, fault.NotFound, git.ReasonNoRepository, ""},
		{"clone of no branch", "", func() error { return clone(git.CloneRequest{URL: "./app", Path: "x", Branch: "nope"}) }, fault.NotFound, git.ReasonNoBranch, ""},
		{"clone from nowhere", "", func() error { return clone(git.CloneRequest{URL: "http://127.0.0.1:1/x", Path: "x"}) }, fault.State, git.ReasonUnreachable, ""},
		{"clone into what is there", "", func() error { return clone(git.CloneRequest{URL: "./app", Path: "other"}) }, fault.Exists, "", ""},

		{"status of no repository", "mkdir -p none", func() error {
			_, err := h.git.Status(ctx, alice, h.box, git.StatusRequest{At: git.At{Path: "none"}})
			return err
		}, fault.NotFound, git.ReasonNoRepository, ""},
		{"log of no directory", "", func() error {
			_, err := h.git.Log(ctx, alice, h.box, git.LogRequest{At: git.At{Path: "missing"}})
			return err
		}, fault.NotFound, git.ReasonNoRepository, "missing"},
		{"remotes of no repository", "", func() error { _, err := h.git.Remotes(ctx, alice, h.box, git.At{Path: "none"}); return err }, fault.NotFound, git.ReasonNoRepository, ""},
		{"log of no commit", "", func() error {
			_, err := h.git.Log(ctx, alice, h.box, git.LogRequest{At: at, Revision: "nope"})
			return err
		}, fault.NotFound, git.ReasonNoCommit, ""},

		{"add of no file", "", func() error {
			return do(h.git.Add(ctx, alice, h.box, git.AddRequest{At: at, Files: []string{"nope"}}))
		}, fault.NotFound, git.ReasonNoPath, "nope"},
		{"restore of no file", "", func() error {
			return do(h.git.Restore(ctx, alice, h.box, git.RestoreRequest{At: at, Files: []string{"nope"}}))
		}, fault.NotFound, git.ReasonNoPath, ""},
		{"commit of nothing", "", func() error { return commit(git.CommitRequest{}) }, fault.State, git.ReasonNothing, ""},
		{"commit by nobody", "git config --global --remove-section user; git config --global user.useConfigOnly true", func() error { return commit(git.CommitRequest{AllowEmpty: true}) }, fault.State, git.ReasonNoIdentity, ""},
		{"commit while another goes on", identity + "; touch app/.git/index.lock", func() error { return commit(git.CommitRequest{AllowEmpty: true}) }, fault.State, git.ReasonInUse, ""},

		{"checkout of no branch", "rm app/.git/index.lock", func() error { return checkout(git.CheckoutRequest{Target: "nope"}) }, fault.NotFound, git.ReasonNoBranch, ""},
		{"checkout of a file", "", func() error { return checkout(git.CheckoutRequest{Target: "f"}) }, fault.NotFound, git.ReasonNoBranch, ""},
		{"checkout over changes", "echo dirt >>app/f", func() error { return checkout(git.CheckoutRequest{Target: "diverged"}) }, fault.State, git.ReasonDirty, ""},
		{"pull over changes", "", func() error { return pull(git.PullRequest{Remote: login()}) }, fault.State, git.ReasonDirty, ""},
		{"rebase over changes", "", func() error { return pull(git.PullRequest{Remote: login(), Mode: "rebase"}) }, fault.State, git.ReasonDirty, ""},
		{"a branch that is there", "cd app && git checkout -q f", func() error {
			_, err := h.git.CreateBranch(ctx, alice, h.box, git.CreateBranchRequest{At: at, Name: "own"})
			return err
		}, fault.Exists, git.ReasonBranchExists, ""},
		{"a branch that is there checked out", "", func() error { return checkout(git.CheckoutRequest{Target: "own", Create: true}) }, fault.Exists, git.ReasonBranchExists, ""},
		{"a branch from nothing", "", func() error {
			_, err := h.git.CreateBranch(ctx, alice, h.box, git.CreateBranchRequest{At: at, Name: "y", Start: "nope"})
			return err
		}, fault.NotFound, git.ReasonNoCommit, ""},
		{"deleting no branch", "", func() error {
			return do(h.git.DeleteBranch(ctx, alice, h.box, git.DeleteBranchRequest{At: at, Name: "nope"}))
		}, fault.NotFound, git.ReasonNoBranch, ""},
		{"deleting the branch that is checked out", "", func() error {
			return do(h.git.DeleteBranch(ctx, alice, h.box, git.DeleteBranchRequest{At: at, Name: "main"}))
		}, fault.State, git.ReasonInUse, ""},
		{"deleting what is not merged", "", func() error {
			return do(h.git.DeleteBranch(ctx, alice, h.box, git.DeleteBranchRequest{At: at, Name: "theirs"}))
		}, fault.State, git.ReasonNotMerged, ""},
		{"resetting to nothing", "", func() error { return reset(git.ResetRequest{Target: "nope"}) }, fault.NotFound, git.ReasonNoCommit, ""},

		{"push that is behind", "cd app && git commit -q --allow-empty -m ahead", func() error { return push(git.PushRequest{Remote: login()}) }, fault.Conflict, git.ReasonRejected, "refs/heads/main was rejected"},
		{"push of no branch", "", func() error { return push(git.PushRequest{Remote: login(), Branch: "nope"}) }, fault.NotFound, git.ReasonNoBranch, ""},
		{"push that the server refuses", "cd app && git branch protected", func() error { return push(git.PushRequest{Remote: login(), Branch: "protected"}) }, fault.State, git.ReasonRefused, "remote: no: fatal: Authentication failed for you"},
		{"push to the branch that is checked out there", "", func() error { return push(git.PushRequest{Name: "inside", Branch: "main"}) }, fault.State, git.ReasonRefused, ""},
		{"push without credentials", "", func() error { return push(git.PushRequest{}) }, fault.State, git.ReasonCredentials, ""},
		{"push to no remote", "", func() error { return push(git.PushRequest{Name: "nope"}) }, fault.NotFound, git.ReasonNoRemote, ""},
		{"push to nothing", "", func() error { return push(git.PushRequest{Name: "gone", Remote: login()}) }, fault.NotFound, git.ReasonNoRepository, ""},
		{"push to no path", "", func() error { return push(git.PushRequest{Name: "nowhere"}) }, fault.NotFound, git.ReasonNoRepository, ""},
		{"push to a program", "", func() error { return push(git.PushRequest{Name: "program"}) }, fault.State, "", "refused"},
		{"push to what it is not", "", func() error { return push(git.PushRequest{Remote: login(), URL: "https://example.org/other"}) }, fault.State, "", "nothing was sent"},
		{"push of credentials to a path", "", func() error { return push(git.PushRequest{Name: "inside", Remote: login()}) }, fault.Invalid, "", "HTTP"},
		{"pull from nowhere", "", func() error { return pull(git.PullRequest{Name: "far"}) }, fault.State, git.ReasonUnreachable, git.Refused},
		{"pull of no branch", "", func() error { return pull(git.PullRequest{Remote: login(), Branch: "nope"}) }, fault.NotFound, git.ReasonNoBranch, ""},
		{"pull that is no fast-forward", "", func() error { return pull(git.PullRequest{Remote: login(), Mode: "ff_only"}) }, fault.Conflict, git.ReasonDiverged, ""},
		{"pull of what has nothing in common", "git init -q -b main alien; cd alien; git commit -q --allow-empty -m x; cd ../app; git remote add alien ../alien", func() error { return pull(git.PullRequest{Name: "alien", Branch: "main"}) }, fault.Conflict, git.ReasonDiverged, ""},
		{"rebase that conflicts", "cd app; echo mine >f; git commit -qam mine; git remote add self .; git checkout -q diverged", func() error {
			return pull(git.PullRequest{Name: "self", Branch: "theirs", Mode: "rebase"})
		}, fault.Conflict, git.ReasonConflict, "undone"},
		{"merge that conflicts", "cd app; test -z \"$(git status --porcelain)\"; git symbolic-ref -q HEAD", func() error { return pull(git.PullRequest{Name: "self", Branch: "theirs"}) }, fault.Conflict, git.ReasonConflict, "f"},
		{"commit of what conflicts", "", func() error { return commit(git.CommitRequest{All: false}) }, fault.Conflict, git.ReasonConflict, ""},
		{"checkout of a branch while there are conflicts", "", func() error { return checkout(git.CheckoutRequest{Target: "main"}) }, fault.Conflict, git.ReasonConflict, ""},
		{"push of no branch that is checked out", "cd app; git merge --abort; git checkout -q --detach", func() error { return push(git.PushRequest{Remote: login()}) }, fault.State, git.ReasonDetached, ""},
		{"a remote that is there", "", func() error {
			_, err := h.git.AddRemote(ctx, alice, h.box, git.AddRemoteRequest{At: at, Name: "origin", URL: "../x"})
			return err
		}, fault.Exists, "", ""},
		{"removing no remote", "", func() error {
			return do(h.git.RemoveRemote(ctx, alice, h.box, git.RemoveRemoteRequest{At: at, Name: "nope"}))
		}, fault.NotFound, git.ReasonNoRemote, ""},
		{"a value that is not there", "", func() error {
			_, err := h.git.Config(ctx, alice, h.box, git.ConfigRequest{At: at, Key: "no.such"})
			return err
		}, fault.NotFound, git.ReasonNoValue, ""},
	} {
		if c.before != "" {
			h.run(c.before)
		}
		err := c.run()
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		e := fault.As(err)
		if fault.Of(err) != c.code || e.Reason != c.reason || !strings.Contains(e.Message+"\n"+e.Remedy, c.says) || e.Remedy == "" && c.code != fault.Invalid {
			t.Errorf("%s: %s %q, want %s %q and %q:\n%s\n→ %s", c.name, e.Code, e.Reason, c.code, c.reason, c.says, e.Message, e.Remedy)
		}
		if strings.Contains(e.Message+e.Remedy, password) {
			t.Errorf("%s: the error has the password: %s", c.name, e.Message)
		}
	}
	if err := h.git.DeleteBranch(context.WithoutCancel(ctx), alice, h.box, git.DeleteBranchRequest{At: at, Name: "theirs", Force: true}); err != nil {
		t.Errorf("by force: %v", err)
	}
}
