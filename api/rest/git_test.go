// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/skiptest"
)

func TestGitClone(t *testing.T) {
	t.Parallel()
	skiptest.WithoutGit(t)
	h := open(t)
	s := h.create()
	at := "/v1/sandboxes/" + s.ID
	made := want[v1.ExecResult](h, 200, "POST", at+"/exec", object{"command": "git init -q -b main from && cd from && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x && git rev-parse HEAD"})
	got := want[v1.GitCloned](h, 200, "POST", at+"/git/clone", object{"url": "./from", "path": "to", "depth": 1})
	if got != (v1.GitCloned{URL: "./from", Path: "/workspace/to", Branch: "main", Commit: strings.TrimSpace(made.Stdout)}) {
		t.Errorf("got %+v", got)
	}
	want[any](h, 409, "POST", at+"/git/clone", object{"url": "./from", "path": "to"})
	for field, body := range map[string]object{
		"url": {"url": "ext::sh -c id"}, "depth": {"url": "./from", "depth": 0}, "timeout_seconds": {"url": "./from", "timeout_seconds": 0},
		"branch": {"url": "./from", "branch": "--bare"}, "token": {"url": "https://a.example/x", "token": "a", "password": "b"},
	} {
		if p := want[v1.Problem](h, 422, "POST", at+"/git/clone", body); len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: got %+v", field, p)
		}
	}
}
