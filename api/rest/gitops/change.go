// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/git"
)

// body is the input of operations that take a JSON body.
type body[T any] struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body T
}

func (a api) clone(ctx context.Context, c *httpapi.Call, in *body[v1.GitClone]) (v1.GitCloned, error) {
	var sp httpapi.Spellings
	b := &in.Body
	r := git.CloneRequest{
		URL: b.URL, Path: text(b.Path), Branch: text(b.Branch), Commit: text(b.Commit), Remote: login(b.GitLogin), User: b.AsUser, Timeout: span(&sp, b.TimeoutSeconds),
	}
	if b.Depth != nil {
		if r.Depth = *b.Depth; r.Depth == 0 {
			sp.Add("depth", "0 is less than 1; leave it out for all of the history")
		}
	}
	return run(ctx, c, &sp, func(ctx context.Context) (v1.GitCloned, error) {
		got, err := a.Clone(ctx, c.Caller, in.Ref, r)
		return v1.GitCloned{URL: got.URL, Path: got.Path, Commit: got.Commit, Branch: got.Branch}, err
	})
}

func (a api) init(ctx context.Context, c *httpapi.Call, in *body[v1.GitInit]) (v1.GitInitialized, error) {
	var sp httpapi.Spellings
	r := git.InitRequest{At: at(&sp, in.Body.GitAt), Branch: in.Body.Branch, Bare: in.Body.Bare}
	return run(ctx, c, &sp, func(ctx context.Context) (v1.GitInitialized, error) {
		got, err := a.Init(ctx, c.Caller, in.Ref, r)
		return v1.GitInitialized{Existed: got.Existed, Branch: got.Branch}, err
	})
}

func (a api) add(ctx context.Context, c *httpapi.Call, in *body[v1.GitAdd]) (httpapi.None, error) {
	var sp httpapi.Spellings
	r := git.AddRequest{At: at(&sp, in.Body.GitAt), Files: in.Body.Files, All: in.Body.All, Force: in.Body.Force}
	return none(ctx, c, &sp, func(ctx context.Context) error { return a.Add(ctx, c.Caller, in.Ref, r) })
}

func (a api) commit(ctx context.Context, c *httpapi.Call, in *body[v1.GitCommit]) (v1.GitHead, error) {
	var sp httpapi.Spellings
	b := &in.Body
	r := git.CommitRequest{
		At: at(&sp, b.GitAt), Message: b.Message, Author: b.Author, Email: b.Email, All: b.All, Amend: b.Amend, AllowEmpty: b.AllowEmpty, SkipHooks: b.SkipHooks,
	}
	return run(ctx, c, &sp, func(ctx context.Context) (v1.GitHead, error) {
		got, err := a.Commit(ctx, c.Caller, in.Ref, r)
		return v1.GitHead{Commit: got.Commit, Branch: got.Branch}, err
	})
}

func (a api) push(ctx context.Context, c *httpapi.Call, in *body[v1.GitPush]) (v1.GitPushed, error) {
	var sp httpapi.Spellings
	b := &in.Body
	r := git.PushRequest{
		At: at(&sp, b.GitAt), Remote: login(b.GitLogin), Name: b.Remote, URL: b.URL, Branch: b.Branch, To: b.To,
		SetUpstream: b.SetUpstream, Force: b.Force, Delete: b.Delete, Tags: b.Tags, SkipHooks: b.SkipHooks,
	}
	return run(ctx, c, &sp, func(ctx context.Context) (v1.GitPushed, error) {
		got, err := a.Push(ctx, c.Caller, in.Ref, r)
		out := v1.GitPushed{Remote: got.Remote, URL: got.URL, Refs: make([]v1.GitPushedRef, 0, len(got.Refs))}
		for _, x := range got.Refs {
			out.Refs = append(out.Refs, v1.GitPushedRef{Name: x.Name, State: string(x.State), Detail: x.Detail})
		}
		return out, err
	})
}

func (a api) pull(ctx context.Context, c *httpapi.Call, in *body[v1.GitPull]) (v1.GitPulled, error) {
	var sp httpapi.Spellings
	b := &in.Body
	r := git.PullRequest{At: at(&sp, b.GitAt), Remote: login(b.GitLogin), Name: b.Remote, URL: b.URL, Branch: b.Branch, Mode: b.Mode, SkipHooks: b.SkipHooks}
	return run(ctx, c, &sp, func(ctx context.Context) (v1.GitPulled, error) {
		got, err := a.Pull(ctx, c.Caller, in.Ref, r)
		return v1.GitPulled{Remote: got.Remote, URL: got.URL, Branch: got.Branch, Before: got.Before, Commit: got.Commit}, err
	})
}

func (a api) checkout(ctx context.Context, c *httpapi.Call, in *body[v1.GitCheckout]) (v1.GitHead, error) {
	var sp httpapi.Spellings
	b := &in.Body
	r := git.CheckoutRequest{At: at(&sp, b.GitAt), Target: b.Target, Create: b.Create, Start: b.Start, Detach: b.Detach, Force: b.Force, SkipHooks: b.SkipHooks}
	return run(ctx, c, &sp, func(ctx context.Context) (v1.GitHead, error) {
		got, err := a.Checkout(ctx, c.Caller, in.Ref, r)
		return v1.GitHead{Commit: got.Commit, Branch: got.Branch}, err
	})
}

func (a api) reset(ctx context.Context, c *httpapi.Call, in *body[v1.GitReset]) (v1.GitHead, error) {
	var sp httpapi.Spellings
	r := git.ResetRequest{At: at(&sp, in.Body.GitAt), Mode: in.Body.Mode, Target: in.Body.Target, Files: in.Body.Files}
	return run(ctx, c, &sp, func(ctx context.Context) (v1.GitHead, error) {
		got, err := a.Reset(ctx, c.Caller, in.Ref, r)
		return v1.GitHead{Commit: got.Commit, Branch: got.Branch}, err
	})
}

func (a api) restore(ctx context.Context, c *httpapi.Call, in *body[v1.GitRestore]) (httpapi.None, error) {
	var sp httpapi.Spellings
	b := &in.Body
	r := git.RestoreRequest{At: at(&sp, b.GitAt), Files: b.Files, Staged: b.Staged, Worktree: b.Worktree, Source: b.Source}
	return none(ctx, c, &sp, func(ctx context.Context) error { return a.Restore(ctx, c.Caller, in.Ref, r) })
}
