// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
)

func TestGitClone(t *testing.T) {
	t.Parallel()
	skiptest.WithoutGit(t)
	h := open(t)
	ctx := t.Context()
	box, _, err := h.Create(ctx, v1.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Exec(ctx, box.ID, v1.Exec{Command: new("git init -q -b main from && cd from && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x")}); err != nil {
		t.Fatal(err)
	}
	got, err := h.GitClone(ctx, box.ID, v1.GitClone{URL: "./from", Path: new("to")})
	if err != nil || got.Path != "/workspace/to" || got.Branch != "main" || len(got.Commit) != 40 {
		t.Errorf("GitClone: got %+v, %v", got, err)
	}
	if _, err := h.GitClone(ctx, box.ID, v1.GitClone{URL: "./from", Path: new("to")}); fault.Of(err) != fault.Exists && fault.Of(err) != fault.Conflict {
		t.Errorf("GitClone into what is there: %v", err)
	}
	if _, err := h.GitClone(ctx, box.ID, v1.GitClone{URL: "ext::sh -c id"}); fault.Of(err) != fault.Invalid {
		t.Errorf("GitClone of a program: %v", err)
	}
}

func TestGitVerbs(t *testing.T) {
	t.Parallel()
	skiptest.WithoutGit(t)
	h := open(t)
	ctx := t.Context()
	box, _, err := h.Create(ctx, v1.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	id, at := box.ID, v1.GitAt{Path: "app"}
	do := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v (%s)", what, err, fault.ReasonOf(err))
		}
	}
	made, err := h.GitInit(ctx, id, v1.GitInit{GitAt: at, Branch: "main"})
	do("init", err)
	_, err = h.GitInit(ctx, id, v1.GitInit{GitAt: v1.GitAt{Path: "far.git"}, Bare: true, Branch: "main"})
	do("init of a bare one", err)
	if made.Existed || made.Branch != "main" {
		t.Errorf("init: %+v", made)
	}
	_, err = h.Exec(ctx, id, v1.Exec{Command: new("cd app && echo a >a && echo b >'-b'")})
	do("exec", err)
	do("add", h.GitAdd(ctx, id, v1.GitAdd{GitAt: at, Files: []string{"-b"}}))
	st, err := h.GitStatus(ctx, id, client.GitStatusQuery{GitAt: at, Untracked: "all"})
	do("status", err)
	if len(st.Files) != 2 || st.Clean || st.Detached || st.Branch != "main" || st.Files[0] != (v1.GitFileStatus{Path: "-b", Index: "added", Worktree: "unmodified"}) {
		t.Errorf("status: %+v", st)
	}
	first, err := h.GitCommit(ctx, id, v1.GitCommit{GitAt: at, Message: "one", Author: "Ann", Email: "ann@example.org"})
	do("commit", err)
	log, err := h.GitLog(ctx, id, client.GitLogQuery{GitAt: at, Revision: "HEAD", Files: []string{"-b"}, Limit: 5})
	do("log", err)
	if len(log.Items) != 1 || log.Items[0].Commit != first.Commit || log.Items[0].Author.At == nil || log.Items[0].Message != "one" || log.More {
		t.Errorf("log: %+v", log)
	}
	_, err = h.GitAddRemote(ctx, id, v1.GitAddRemote{GitAt: at, Name: "origin", URL: "../far.git"})
	do("add a remote", err)
	pushed, err := h.GitPush(ctx, id, v1.GitPush{GitAt: at, SetUpstream: true})
	do("push", err)
	if len(pushed.Refs) != 1 || pushed.Refs[0].State != "created" || pushed.URL != "../far.git" {
		t.Errorf("push: %+v", pushed)
	}
	pulled, err := h.GitPull(ctx, id, v1.GitPull{GitAt: at, Mode: "ff_only"})
	do("pull", err)
	if pulled.Commit != first.Commit || pulled.Branch != "main" {
		t.Errorf("pull: %+v", pulled)
	}
	_, err = h.GitCreateBranch(ctx, id, v1.GitCreateBranch{GitAt: at, Name: "topic"})
	do("create a branch", err)
	head, err := h.GitCheckout(ctx, id, v1.GitCheckout{GitAt: at, Target: "topic"})
	do("checkout", err)
	if *head != (v1.GitHead{Commit: first.Commit, Branch: "topic"}) {
		t.Errorf("checkout: %+v", head)
	}
	_, err = h.GitCheckout(ctx, id, v1.GitCheckout{GitAt: at, Target: "main"})
	do("checkout of main", err)
	do("delete a branch", h.GitDeleteBranch(ctx, id, at, "topic", true))
	list, err := h.GitBranches(ctx, id, at, true)
	do("branches", err)
	if len(list.Items) != 2 || list.Current != "main" || list.Items[0].At == nil || !list.Items[1].Remote {
		t.Errorf("branches: %+v", list)
	}
	_, err = h.Exec(ctx, id, v1.Exec{Command: new("cd app && echo x >./-b")})
	do("exec", err)
	do("restore", h.GitRestore(ctx, id, v1.GitRestore{GitAt: at, Files: []string{"-b"}}))
	head, err = h.GitReset(ctx, id, v1.GitReset{GitAt: at, Mode: "hard"})
	do("reset", err)
	if head.Commit != first.Commit {
		t.Errorf("reset: %+v", head)
	}
	do("set a value", h.GitSetConfig(ctx, id, v1.GitSetConfig{GitAt: at, Key: "user.name", Value: "-Ann"}))
	if got, err := h.GitConfig(ctx, id, at, "user.name", "local"); got != "-Ann" || err != nil {
		t.Errorf("config: %q, %v", got, err)
	}
	do("remove a value", h.GitUnsetConfig(ctx, id, at, "user.name", ""))
	if _, err := h.GitConfig(ctx, id, at, "user.name", "local"); fault.Of(err) != fault.NotFound || fault.ReasonOf(err) != "git_no_value" {
		t.Errorf("a value that is not there: %v, %q", err, fault.ReasonOf(err))
	}
	do("remove a remote", h.GitRemoveRemote(ctx, id, at, "origin"))
	if l, err := h.GitRemotes(ctx, id, at); len(l) != 0 || err != nil {
		t.Errorf("remotes: %+v, %v", l, err)
	}
	for reason, err := range map[string]error{
		"git_no_remote": func() error { _, err := h.GitPush(ctx, id, v1.GitPush{GitAt: at}); return err }(),
		"git_nothing_to_commit": func() error {
			_, err := h.GitCommit(ctx, id, v1.GitCommit{GitAt: at, Message: "x", Author: "a", Email: "b"})
			return err
		}(),
		"git_no_repository": func() error {
			_, err := h.GitStatus(ctx, id, client.GitStatusQuery{GitAt: v1.GitAt{Path: "none"}})
			return err
		}(),
		"git_no_branch": func() error { _, err := h.GitCheckout(ctx, id, v1.GitCheckout{GitAt: at, Target: "none"}); return err }(),
	} {
		if fault.ReasonOf(err) != reason {
			t.Errorf("want %s, got %v (%q)", reason, err, fault.ReasonOf(err))
		}
	}
	seconds := 0.0
	at.TimeoutSeconds = &seconds
	if _, err := h.GitRemotes(ctx, id, at); fault.Of(err) != fault.Invalid || fault.As(err).Fields[0].Name != "timeout_seconds" {
		t.Errorf("no time: %v", err)
	}
}
