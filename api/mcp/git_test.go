// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"strings"
	"testing"

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
