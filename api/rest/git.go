// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/git"
)

type gitClone struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.GitClone
}

func (a *API) gitClone(ctx context.Context, c *idempotency.Call, in *gitClone) (v1.GitCloned, error) {
	var sp httpapi.Spellings
	b := &in.Body
	r := git.CloneRequest{
		URL: b.URL, Path: httpapi.Given(b.Path), Branch: httpapi.Given(b.Branch), Commit: httpapi.Given(b.Commit),
		Remote: git.Remote{Username: httpapi.Given(b.Username), Password: httpapi.Given(b.Password), Token: httpapi.Given(b.Token)},
	}
	if b.Depth != nil {
		if r.Depth = *b.Depth; r.Depth == 0 {
			sp.Add("depth", "0 is less than 1; leave it out for all of the history")
		}
	}
	if b.TimeoutSeconds != nil {
		r.Timeout = span(&sp, "timeout_seconds", *b.TimeoutSeconds)
		if *b.TimeoutSeconds == 0 {
			sp.Add("timeout_seconds", "0 is not more than 0 seconds; leave it out for the default")
		}
	}
	if err := sp.Err(); err != nil {
		return v1.GitCloned{}, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	got, err := a.Git.Clone(ctx, c.Caller, in.Ref, r)
	if err != nil {
		return v1.GitCloned{}, httpapi.Cause(ctx, err)
	}
	return v1.GitCloned{URL: got.URL, Path: got.Path, Commit: got.Commit, Branch: got.Branch}, nil
}
