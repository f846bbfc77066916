// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/git"
)

type branchesIn struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
	where
	Remote *bool `query:"remote" doc:"also what is known of the branches of remotes"`
}

func (a api) branches(ctx context.Context, c *httpapi.Call, in *branchesIn) (v1.GitBranches, error) {
	var sp httpapi.Spellings
	r := git.BranchesRequest{At: in.at(&sp), Remote: in.Remote != nil && *in.Remote}
	return run(ctx, c, &sp, func(ctx context.Context) (v1.GitBranches, error) {
		l, err := a.Branches(ctx, c.Caller, in.Ref, r)
		out := v1.GitBranches{Current: l.Current, Truncated: l.Truncated, Items: make([]v1.GitBranch, 0, len(l.Branches))}
		for i := range l.Branches {
			out.Items = append(out.Items, branch(&l.Branches[i]))
		}
		return out, err
	})
}

func branch(b *git.Branch) v1.GitBranch {
	return v1.GitBranch{Name: b.Name, Remote: b.Remote, Commit: b.Commit, Upstream: b.Upstream, Current: b.Current, At: date(b.At)}
}

func (a api) createBranch(ctx context.Context, c *httpapi.Call, in *body[v1.GitCreateBranch]) (v1.GitBranch, error) {
	var sp httpapi.Spellings
	b := &in.Body
	r := git.CreateBranchRequest{At: at(&sp, b.GitAt), Name: b.Name, Start: b.Start, Force: b.Force, Checkout: b.Checkout}
	return run(ctx, c, &sp, func(ctx context.Context) (v1.GitBranch, error) {
		got, err := a.CreateBranch(ctx, c.Caller, in.Ref, r)
		return branch(&got), err
	})
}

type deleteBranchIn struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
	where
	Name  *string `query:"name" doc:"the branch"`
	Force *bool   `query:"force" doc:"also with commits that are in no other"`
}

func (a api) deleteBranch(ctx context.Context, c *httpapi.Call, in *deleteBranchIn) (httpapi.None, error) {
	var sp httpapi.Spellings
	r := git.DeleteBranchRequest{At: in.at(&sp), Name: text(in.Name), Force: in.Force != nil && *in.Force}
	return none(ctx, c, &sp, func(ctx context.Context) error { return a.DeleteBranch(ctx, c.Caller, in.Ref, r) })
}

type remotesIn struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
	where
}

func (a api) remotes(ctx context.Context, c *httpapi.Call, in *remotesIn) (v1.GitRemotes, error) {
	var sp httpapi.Spellings
	r := in.at(&sp)
	return run(ctx, c, &sp, func(ctx context.Context) (v1.GitRemotes, error) {
		l, err := a.Remotes(ctx, c.Caller, in.Ref, r)
		out := v1.GitRemotes{Items: make([]v1.GitRemote, 0, len(l))}
		for _, x := range l {
			out.Items = append(out.Items, v1.GitRemote{Name: x.Name, URL: x.URL, PushURL: x.PushURL})
		}
		return out, err
	})
}

func (a api) addRemote(ctx context.Context, c *httpapi.Call, in *body[v1.GitAddRemote]) (v1.GitRemote, error) {
	var sp httpapi.Spellings
	b := &in.Body
	r := git.AddRemoteRequest{At: at(&sp, b.GitAt), Name: b.Name, URL: b.URL, Overwrite: b.Overwrite}
	return run(ctx, c, &sp, func(ctx context.Context) (v1.GitRemote, error) {
		got, err := a.AddRemote(ctx, c.Caller, in.Ref, r)
		return v1.GitRemote{Name: got.Name, URL: got.URL}, err
	})
}

type removeRemoteIn struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
	where
	Name *string `query:"name" doc:"the remote"`
}

func (a api) removeRemote(ctx context.Context, c *httpapi.Call, in *removeRemoteIn) (httpapi.None, error) {
	var sp httpapi.Spellings
	r := git.RemoveRemoteRequest{At: in.at(&sp), Name: text(in.Name)}
	return none(ctx, c, &sp, func(ctx context.Context) error { return a.RemoveRemote(ctx, c.Caller, in.Ref, r) })
}
