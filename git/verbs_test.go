// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"encoding/pem"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/fault"
	"sandpit.dev/git"
)

const identity = "git config --global user.name a && git config --global user.email a@example.org"

// must fails the test at an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%v (%s, %s)", err, fault.Of(err), fault.ReasonOf(err))
		}
		return v
	}
}

func TestADayWithARepository(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	at := git.At{Path: "app"}
	h.clone(git.CloneRequest{URL: h.url + "/app.git", Remote: login()})

	st := must[git.Status](t)(h.git.Status(ctx, alice, h.box, git.StatusRequest{At: at}))
	if st.Branch != "main" || st.Commit != h.first || st.Upstream != "origin/main" || !st.Published || len(st.Files) != 0 || st.Detached() || path.Base(st.Root) != "app" {
		t.Errorf("the status after a clone: %+v", st)
	}

	h.run(`cd app && echo more >>f && printf x >'-n
ew	ü' && mkdir d && printf x >"d/$(printf '\377')" && printf x >'*'`)
	st = must[git.Status](t)(h.git.Status(ctx, alice, h.box, git.StatusRequest{At: at}))
	want := []git.FileStatus{
		{Path: "f", Index: git.Unmodified, Worktree: git.Modified},
		{Path: "*", Index: git.Untracked, Worktree: git.Untracked},
		{Path: "-n\new\tü", Index: git.Untracked, Worktree: git.Untracked},
		{Path: "d/\uefff", Index: git.Untracked, Worktree: git.Untracked},
	}
	if d := cmp.Diff(want, st.Files); d != "" {
		t.Errorf("the files (-want +got):\n%s", d)
	}
	normal := must[git.Status](t)(h.git.Status(ctx, alice, h.box, git.StatusRequest{At: at, Untracked: git.UntrackedNormal}))
	none := must[git.Status](t)(h.git.Status(ctx, alice, h.box, git.StatusRequest{At: at, Untracked: git.UntrackedNo}))
	if len(none.Files) != 1 || !slices.Contains(normal.Files, git.FileStatus{Path: "d", Index: git.Untracked, Worktree: git.Untracked}) {
		t.Errorf("untracked: normal %+v, no %+v", normal.Files, none.Files)
	}

	// A pattern is a name, and names are bytes.
	if err := h.git.Add(ctx, alice, h.box, git.AddRequest{At: at, Files: []string{"*", "-n\new\tü", "d/\uefff"}}); err != nil {
		t.Fatal(err)
	}
	st = must[git.Status](t)(h.git.Status(ctx, alice, h.box, git.StatusRequest{At: at}))
	for _, f := range st.Files {
		if f.Path == "f" != (f.Worktree == git.Modified && f.Index == git.Unmodified) || f.Path != "f" && f.Index != git.Added {
			t.Errorf("after adding three files: %+v", f)
		}
	}
	made := must[git.Committed](t)(h.git.Commit(ctx, alice, h.box, git.CommitRequest{At: at, Message: "-F /etc/passwd\n\n# no comment\n", Author: "Ann", Email: "ann@example.org"}))
	if made.Branch != "main" || made.Commit == h.first || len(made.Commit) != 40 {
		t.Errorf("the commit: %+v", made)
	}
	log := must[git.Log](t)(h.git.Log(ctx, alice, h.box, git.LogRequest{At: at, Limit: 1}))
	if !log.More || len(log.Commits) != 1 {
		t.Fatalf("the log: %+v", log)
	}
	got := log.Commits[0]
	if got.ID != made.Commit || got.Message != "-F /etc/passwd\n\n# no comment" || got.Author.Name != "Ann" || got.Committer.Email != "ann@example.org" || got.Author.At.IsZero() || !slices.Equal(got.Parents, []string{h.first}) {
		t.Errorf("the log's commit: %+v", got)
	}
	of := must[git.Log](t)(h.git.Log(ctx, alice, h.box, git.LogRequest{At: at, Files: []string{"f"}}))
	if of.More || len(of.Commits) != 1 || of.Commits[0].ID != h.first {
		t.Errorf("the log of a file: %+v", of)
	}
	amended := must[git.Committed](t)(h.git.Commit(ctx, alice, h.box, git.CommitRequest{At: at, Amend: true, All: true, Author: "Ann", Email: "ann@example.org"}))
	if amended.Commit == made.Commit || h.run("git -C app show -s --format=%s; cat app/f") != "-F /etc/passwd\none\nmore" {
		t.Errorf("an amended commit: %+v", amended)
	}

	branch := must[git.Branch](t)(h.git.CreateBranch(ctx, alice, h.box, git.CreateBranchRequest{At: at, Name: "topic/a", Start: "HEAD~1"}))
	if branch.Commit != h.first || branch.Current {
		t.Errorf("a branch: %+v", branch)
	}
	list := must[git.BranchList](t)(h.git.Branches(ctx, alice, h.box, git.BranchesRequest{At: at, Remote: true}))
	var names []string
	for _, b := range list.Branches {
		names = append(names, b.Name)
		if b.Remote != strings.HasPrefix(b.Name, "origin/") || b.Current != (b.Name == "main") || b.At.IsZero() || (b.Upstream == "origin/main") != (b.Name == "main") {
			t.Errorf("a branch in the list: %+v", b)
		}
	}
	if d := cmp.Diff([]string{"main", "topic/a", "origin/main", "origin/side"}, names); d != "" || list.Current != "main" {
		t.Errorf("the branches, of which %q is checked out (-want +got):\n%s", list.Current, d)
	}
	out := must[git.CheckedOut](t)(h.git.Checkout(ctx, alice, h.box, git.CheckoutRequest{At: at, Target: "topic/a"}))
	if out != (git.CheckedOut{Commit: h.first, Branch: "topic/a"}) {
		t.Errorf("checked out: %+v", out)
	}
	out = must[git.CheckedOut](t)(h.git.Checkout(ctx, alice, h.box, git.CheckoutRequest{At: at, Target: "side"})) // only the remote has it
	if out != (git.CheckedOut{Commit: h.second, Branch: "side"}) {
		t.Errorf("a branch of the remote checked out: %+v", out)
	}
	out = must[git.CheckedOut](t)(h.git.Checkout(ctx, alice, h.box, git.CheckoutRequest{At: at, Target: "main~1", Detach: true}))
	if out != (git.CheckedOut{Commit: h.first}) {
		t.Errorf("a commit checked out: %+v", out)
	}
	if list := must[git.BranchList](t)(h.git.Branches(ctx, alice, h.box, git.BranchesRequest{At: at})); list.Current != "" || len(list.Branches) != 3 {
		t.Errorf("the branches when none is checked out: %+v", list)
	}
	out = must[git.CheckedOut](t)(h.git.Checkout(ctx, alice, h.box, git.CheckoutRequest{At: at, Target: "new", Create: true, Start: "main"}))
	if out != (git.CheckedOut{Commit: amended.Commit, Branch: "new"}) {
		t.Errorf("a new branch checked out: %+v", out)
	}
	if err := h.git.DeleteBranch(ctx, alice, h.box, git.DeleteBranchRequest{At: at, Name: "topic/a"}); err != nil {
		t.Error(err)
	}

	pushed := must[git.Pushed](t)(h.git.Push(ctx, alice, h.box, git.PushRequest{At: at, Remote: login(), SetUpstream: true, URL: h.url + "/app.git"}))
	if d := cmp.Diff(git.Pushed{Remote: "origin", URL: h.url + "/app.git", Refs: []git.PushedRef{{Name: "refs/heads/new", State: git.PushCreated, Detail: "[new branch]"}}}, pushed); d != "" {
		t.Errorf("pushed (-want +got):\n%s", d)
	}
	pushed = must[git.Pushed](t)(h.git.Push(ctx, alice, h.box, git.PushRequest{At: at, Remote: login(), Branch: "main"}))
	if len(pushed.Refs) != 1 || pushed.Refs[0].State != git.PushUpdated {
		t.Errorf("pushed main: %+v", pushed)
	}
	if st = must[git.Status](t)(h.git.Status(ctx, alice, h.box, git.StatusRequest{At: at})); st.Upstream != "origin/new" || !st.Published {
		t.Errorf("the status after a push: %+v", st)
	}

	// Somebody else pulls it, and pushes what this one pulls.
	h.clone(git.CloneRequest{URL: h.url + "/app.git", Path: "b", Branch: "new", Remote: login()})
	h.run("cd b && " + identity + " && echo b >b && git add b && git commit -qm b")
	must[git.Pushed](t)(h.git.Push(ctx, alice, h.box, git.PushRequest{At: git.At{Path: "b"}, Remote: login(), Branch: "new"}))
	pulled := must[git.Pulled](t)(h.git.Pull(ctx, alice, h.box, git.PullRequest{At: at, Remote: login()}))
	if pulled.Before != amended.Commit || pulled.Commit == pulled.Before || pulled.Branch != "new" || pulled.Remote != "origin" || h.run("cat app/b") != "b" {
		t.Errorf("pulled: %+v", pulled)
	}
	for _, mode := range []string{"merge", "rebase"} {
		h.run("cd app && git reset -q --hard HEAD~1 && echo mine >mine && git add mine && git commit -qm mine")
		pulled = must[git.Pulled](t)(h.git.Pull(ctx, alice, h.box, git.PullRequest{At: at, Remote: login(), Mode: mode}))
		parents := map[string]string{"merge": "2", "rebase": "1"}[mode]
		if got := h.run("cd app && cat b mine; git show -s --format=%P | wc -w; git reset -q --hard HEAD~1"); got != "b\nmine\n"+parents {
			t.Errorf("pulled to %s: %q", mode, got)
		}
		h.run("cd app && git reset -q --hard origin/new")
	}
	deleted := must[git.Pushed](t)(h.git.Push(ctx, alice, h.box, git.PushRequest{At: at, Remote: login(), Branch: "new", Delete: true}))
	if len(deleted.Refs) != 1 || deleted.Refs[0].State != git.PushDeleted {
		t.Errorf("deleted at the server: %+v", deleted)
	}

	h.run("cd app && echo dirt >>f")
	if err := h.git.Restore(ctx, alice, h.box, git.RestoreRequest{At: at, Files: []string{"f"}}); err != nil {
		t.Error(err)
	}
	h.run("cd app && echo dirt >>f && git add f")
	if err := h.git.Restore(ctx, alice, h.box, git.RestoreRequest{At: at, Files: []string{"f"}, Staged: true, Worktree: true, Source: "HEAD~1"}); err != nil {
		t.Error(err)
	}
	h.run("cd app && git add f")
	must[git.CheckedOut](t)(h.git.Reset(ctx, alice, h.box, git.ResetRequest{At: at, Files: []string{"f"}}))
	must[git.CheckedOut](t)(h.git.Reset(ctx, alice, h.box, git.ResetRequest{At: at, Mode: "hard", Target: h.first}))
	if got := h.run("cd app && cat f && git status --porcelain && git rev-parse HEAD"); got != "one\n"+h.first {
		t.Errorf("after restoring and resetting: %q", got)
	}
}

func TestRemotesAndConfiguration(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	at := git.At{Path: "new"}
	made := must[git.Initialized](t)(h.git.Init(ctx, alice, h.box, git.InitRequest{At: at, Branch: "trunk"}))
	again := must[git.Initialized](t)(h.git.Init(ctx, alice, h.box, git.InitRequest{At: at}))
	if made != (git.Initialized{Branch: "trunk"}) || again != (git.Initialized{Branch: "trunk", Existed: true}) {
		t.Errorf("made %+v, and again %+v", made, again)
	}
	bare := must[git.Initialized](t)(h.git.Init(ctx, alice, h.box, git.InitRequest{At: git.At{Path: "-bare.git"}, Bare: true, Branch: "main"}))
	if bare.Branch != "main" || h.run("git -C ./-bare.git rev-parse --is-bare-repository") != "true" {
		t.Errorf("a bare one: %+v", bare)
	}
	if l := must[git.Log](t)(h.git.Log(ctx, alice, h.box, git.LogRequest{At: at})); len(l.Commits) != 0 || l.More {
		t.Errorf("the log of nothing: %+v", l)
	}
	if l := must[git.BranchList](t)(h.git.Branches(ctx, alice, h.box, git.BranchesRequest{At: at})); len(l.Branches) != 0 || l.Current != "trunk" {
		t.Errorf("the branches of nothing: %+v", l)
	}
	if s := must[git.Status](t)(h.git.Status(ctx, alice, h.box, git.StatusRequest{At: at})); s.Commit != "" || s.Branch != "trunk" || s.Published {
		t.Errorf("the status of nothing: %+v", s)
	}
	if l := must[[]git.RemoteRepository](t)(h.git.Remotes(ctx, alice, h.box, at)); len(l) != 0 {
		t.Errorf("remotes: %+v", l)
	}
	for _, name := range []string{"up", "origin"} {
		must[git.RemoteRepository](t)(h.git.AddRemote(ctx, alice, h.box, git.AddRemoteRequest{At: at, Name: name, URL: "../-bare.git"}))
	}
	must[git.RemoteRepository](t)(h.git.AddRemote(ctx, alice, h.box, git.AddRemoteRequest{At: at, Name: "up", URL: "https://example.org/x", Overwrite: true}))
	h.run("cd new && git config remote.up.pushurl https://u:hidden@example.org/y")
	l := must[[]git.RemoteRepository](t)(h.git.Remotes(ctx, alice, h.box, at))
	if d := cmp.Diff([]git.RemoteRepository{{Name: "origin", URL: "../-bare.git"}, {Name: "up", URL: "https://example.org/x", PushURL: "https://u@example.org/y"}}, l); d != "" {
		t.Errorf("remotes (-want +got):\n%s", d)
	}
	if err := h.git.RemoveRemote(ctx, alice, h.box, git.RemoveRemoteRequest{At: at, Name: "up"}); err != nil || h.run("git -C new remote") != "origin" {
		t.Errorf("a remote removed: %v", err)
	}

	for key, value := range map[string]string{"user.name": "-Ann\nO", "user.email": "ann@example.org", "branch.a=b.c.note": "x=y", "core.pager": "less"} {
		c := git.ConfigRequest{At: at, Key: key}
		if err := h.git.SetConfig(ctx, alice, h.box, git.SetConfigRequest{ConfigRequest: c, Value: value}); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if got, err := h.git.Config(ctx, alice, h.box, c); got != value || err != nil {
			t.Errorf("%s: got %q, %v", key, got, err)
		}
		c.Scope = "global"
		if _, err := h.git.Config(ctx, alice, h.box, c); fault.ReasonOf(err) != git.ReasonNoValue {
			t.Errorf("%s of the user: %v", key, err)
		}
	}
	if err := h.git.UnsetConfig(ctx, alice, h.box, git.ConfigRequest{At: at, Key: "user.name"}); err != nil {
		t.Error(err)
	}
	if err := h.git.UnsetConfig(ctx, alice, h.box, git.ConfigRequest{At: at, Key: "user.name"}); fault.ReasonOf(err) != git.ReasonNoValue {
		t.Errorf("unset twice: %v", err)
	}

	// A push to a path inside, and a pull by who has no upstream.
	h.run("cd new && " + identity + " && git commit -q --allow-empty -m x")
	p := must[git.Pushed](t)(h.git.Push(ctx, alice, h.box, git.PushRequest{At: at, To: "main"}))
	if len(p.Refs) != 1 || p.Refs[0].Name != "refs/heads/main" || p.URL != "../-bare.git" {
		t.Errorf("pushed to a path: %+v", p)
	}
	h.clone(git.CloneRequest{URL: "./-bare.git", Path: "c"})
	if got := must[git.Pulled](t)(h.git.Pull(ctx, alice, h.box, git.PullRequest{At: git.At{Path: "c"}, Mode: "ff_only"})); got.Before != got.Commit || got.Commit == "" {
		t.Errorf("pulled: %+v", got)
	}
}

func TestAServerWithItsOwnAuthority(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.tls.Certificate().Raw}))
	r := git.CloneRequest{URL: h.tls.URL + "/app.git", Remote: login()}
	if _, err := h.git.Clone(ctx, alice, h.box, r); fault.ReasonOf(err) != git.ReasonUnreachable {
		t.Errorf("without its authority: %v", err)
	}
	// What the configuration says of certificates counts for nothing where there are credentials.
	h.run("git config --global http.sslVerify false; git config --global " + "http." + h.tls.URL + "/app.git.sslVerify false")
	if _, err := h.git.Clone(ctx, alice, h.box, r); fault.ReasonOf(err) != git.ReasonUnreachable {
		t.Errorf("with a configuration that takes any certificate: %v", err)
	}
	r.CA, r.Depth, r.Commit = ca, 1, h.first
	if got := h.clone(r); got.Commit != h.first {
		t.Errorf("with its authority: %+v", got)
	}
	remote := login()
	remote.CA = ca
	h.run("cd app && git checkout -qb x")
	must[git.Pushed](t)(h.git.Push(ctx, alice, h.box, git.PushRequest{At: git.At{Path: "app"}, Remote: remote, Branch: "x"}))
	must[git.Pulled](t)(h.git.Pull(ctx, alice, h.box, git.PullRequest{At: git.At{Path: "app"}, Remote: remote}))
	remote.CA, remote.InsecureTLS = "", true
	must[git.Pulled](t)(h.git.Pull(ctx, alice, h.box, git.PullRequest{At: git.At{Path: "app"}, Remote: remote}))
	if got := h.run("grep -lsF -d skip '" + strings.Split(ca, "\n")[3] + "' ${TMPDIR:-/tmp}/tmp.* || true"); got != "" {
		t.Errorf("the authority is left in %s", got)
	}
}
