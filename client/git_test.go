// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"testing"

	v1 "sandpit.dev/api/v1"
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
