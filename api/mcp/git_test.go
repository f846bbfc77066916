// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/internal/skiptest"
)

func TestGitClone(t *testing.T) {
	t.Parallel()
	skiptest.WithoutGit(t)
	h := open(t)
	s := h.session("t-alice", handshake, nil)
	g := newGitHost(t)
	got := call(t, s, "git_clone", arguments{"url": g.url + "/app.git", "username": "u", "token": "s3cret", "depth": 1})
	if text := text(t, got); got.IsError || strings.Contains(text, "s3cret") {
		t.Errorf("got %s", text)
	}
	wantParts(t, text(t, got), "cloned "+g.url+"/app.git into /workspace/app · sandbox default-alice", "branch main, commit ", "was just created")
	wantParts(t, ok(t, s, "run_command", arguments{"command": "cat app/f; grep -c 's[3]cret' app/.git/config"}), "hello", "0")
	for ev := range h.events("default-alice") {
		if strings.Contains(ev, "s3cret") {
			t.Errorf("the record has it: %s", ev)
		}
	}
	refused(t, s, "git_clone", arguments{"url": g.url + "/app.git", "username": "u", "token": "s3cret"}, "error (exists)", "already exists")
	refused(t, s, "git_clone", arguments{"url": "ext::sh -c id", "path": "x"}, "argument url", "a program that git would run")
	refused(t, s, "git_clone", arguments{"url": "https://git.invalid/app.git", "path": "x"}, "error (state): error cloning",
		`network blocked: "git.invalid" is not reached, since the sandbox's network is off`, `next: request_network with {"sandbox": "default-alice", "allow": "git.invalid"} asks for it`)
}

func TestRepositories(t *testing.T) {
	t.Parallel()
	skiptest.WithoutGit(t)
	h := openWith(t, toolset.GroupGit)
	s := h.session("t-alice", handshake, nil)
	at := func(more arguments) arguments {
		more["path"] = "app"
		return more
	}
	ok(t, s, "run_command", arguments{"command": "git init -q --bare -b main far.git"})
	wantParts(t, ok(t, s, "git_init", at(arguments{"branch": "main"})), "made a repository, branch main")
	ok(t, s, "run_command", arguments{"command": "cd app && echo a >a && printf x >$'b\\nc'"})
	wantParts(t, ok(t, s, "git_status", at(arguments{})), "2 files differ", "there is no commit yet", "index untracked, worktree untracked: a")
	ok(t, s, "git_add", at(arguments{}))
	refused(t, s, "git_commit", at(arguments{"message": "one", "author": "Ann"}), "argument author", "go together")
	wantParts(t, ok(t, s, "git_commit", at(arguments{"message": "one", "author": "Ann", "email": "ann@example.org"})), "committed · branch main, commit ")
	wantParts(t, ok(t, s, "git_log", at(arguments{"limit": 1})), "1 commits", "Ann <ann@example.org>\none")
	wantParts(t, ok(t, s, "git_remote", at(arguments{"remote": "origin", "url": "../far.git"})), "the remote origin is ../far.git")
	wantParts(t, ok(t, s, "git_remote", at(arguments{})), "1 remotes", "origin ../far.git")
	wantParts(t, ok(t, s, "git_push", at(arguments{"set_upstream": true})), "pushed to ../far.git", "refs/heads/main: created")
	wantParts(t, ok(t, s, "git_pull", at(arguments{})), "nothing new")
	wantParts(t, ok(t, s, "git_branch", at(arguments{"branch": "topic"})), "made the branch topic, commit ")
	wantParts(t, ok(t, s, "git_checkout", at(arguments{"target": "topic"})), "checked out branch topic")
	wantParts(t, ok(t, s, "git_checkout", at(arguments{"target": "main"})), "checked out branch main")
	ok(t, s, "git_branch", at(arguments{"branch": "topic", "delete": true}))
	wantParts(t, ok(t, s, "git_branch", at(arguments{})), "2 branches", "main ", "(checked out)", "origin/main ")
	ok(t, s, "run_command", arguments{"command": "echo dirt >app/a"})
	ok(t, s, "git_restore", at(arguments{"files": "a"}))
	wantParts(t, ok(t, s, "git_status", at(arguments{})), "0 files differ")
	wantParts(t, ok(t, s, "git_reset", at(arguments{"mode": "hard"})), "reset · branch main, commit ")
	ok(t, s, "git_config", at(arguments{"key": "user.name", "value": "Ann"}))
	wantParts(t, ok(t, s, "git_config", at(arguments{"key": "user.name"})), "Ann")
	ok(t, s, "git_config", at(arguments{"key": "user.name", "delete": true}))
	refused(t, s, "git_checkout", at(arguments{"target": "nope"}), "error (not_found): error checking out nope")
	refused(t, s, "git_commit", at(arguments{"message": "x", "author": "a", "email": "b"}), "error (state): error committing", "nothing to commit")
	refused(t, s, "git_branch", at(arguments{"branch": "--all", "delete": true}), "argument branch", "not a valid branch name")
	refused(t, s, "git_status", arguments{"path": "far.git"}, "error (not_found)", "reason: git_no_repository")
	refused(t, s, "git_status", at(arguments{"as_user": "nobody-such"}), "argument as_user")
}

func TestAServersCertificate(t *testing.T) {
	t.Parallel()
	skiptest.WithoutGit(t)
	h := openWith(t, toolset.GroupGit)
	s := h.session("t-alice", handshake, nil)
	g := newGitHost(t)
	far := httptest.NewTLSServer(g.handler)
	t.Cleanup(far.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: far.Certificate().Raw}))
	as := func(more arguments) arguments {
		more["path"], more["username"], more["password"] = "app", "u", "s3cret"
		return more
	}
	ok(t, s, "git_clone", as(arguments{"url": g.url + "/app.git"}))
	ok(t, s, "git_remote", arguments{"path": "app", "remote": "far", "url": far.URL + "/app.git"})
	refused(t, s, "git_pull", as(arguments{"remote": "far", "branch": "main"}), "error (state)", "reason: git_unreachable")
	wantParts(t, ok(t, s, "git_pull", as(arguments{"remote": "far", "branch": "main", "ca": authority})), "nothing new")
	wantParts(t, ok(t, s, "git_pull", as(arguments{"remote": "far", "branch": "main", "insecure_tls": true})), "nothing new")
	refused(t, s, "git_pull", as(arguments{"remote": "far", "branch": "main", "ca": "no certificate"}), "argument ca")
}
