// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/git"
)

type statusIn struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
	where
	Untracked *string `query:"untracked" doc:"files that git does not know: all (the default), normal (a directory stands for them), no"`
}

func (a api) status(ctx context.Context, c *httpapi.Call, in *statusIn) (v1.GitStatus, error) {
	var sp httpapi.Spellings
	r := git.StatusRequest{At: in.at(&sp), Untracked: text(in.Untracked)}
	return run(ctx, c, &sp, func(ctx context.Context) (v1.GitStatus, error) {
		s, err := a.Status(ctx, c.Caller, in.Ref, r)
		if err != nil {
			return v1.GitStatus{}, err
		}
		out := v1.GitStatus{
			Root: s.Root, Commit: s.Commit, Branch: s.Branch, Detached: s.Detached(), Upstream: s.Upstream, Published: s.Published, Ahead: s.Ahead, Behind: s.Behind,
			Clean: len(s.Files) == 0, Truncated: s.Truncated, Files: make([]v1.GitFileStatus, 0, len(s.Files)),
		}
		for _, f := range s.Files {
			out.Files = append(out.Files, v1.GitFileStatus{Path: f.Path, From: f.From, Index: string(f.Index), Worktree: string(f.Worktree), Submodule: f.Submodule})
		}
		return out, nil
	})
}

type logIn struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
	where
	Revision *string  `query:"revision" doc:"the newest of them: a branch, a tag, a commit, or one before it such as HEAD~1; left out: HEAD"`
	File     []string `query:"file" doc:"only commits that changed one of these, separated by commas or given again"`
	Limit    *int     `query:"limit" doc:"most commits, 1 to 1000; default 20"`
	Skip     *int     `query:"skip" doc:"pass over as many"`
}

func (a api) log(ctx context.Context, c *httpapi.Call, in *logIn) (v1.GitLog, error) {
	var sp httpapi.Spellings
	r := git.LogRequest{At: in.at(&sp), Revision: text(in.Revision), Files: in.File}
	if in.Limit != nil {
		if r.Limit = *in.Limit; r.Limit == 0 {
			sp.Add("limit", "0 is outside 1 to %d", git.MaxLog)
		}
	}
	if in.Skip != nil {
		r.Skip = *in.Skip
	}
	return run(ctx, c, &sp, func(ctx context.Context) (v1.GitLog, error) {
		l, err := a.Log(ctx, c.Caller, in.Ref, r)
		if err != nil {
			return v1.GitLog{}, err
		}
		out := v1.GitLog{More: l.More, Items: make([]v1.GitLogCommit, 0, len(l.Commits))}
		for _, x := range l.Commits {
			out.Items = append(out.Items, v1.GitLogCommit{Commit: x.ID, Parents: append([]string{}, x.Parents...), Author: person(x.Author), Committer: person(x.Committer), Message: x.Message})
		}
		return out, nil
	})
}

func person(p git.Person) v1.GitPerson {
	return v1.GitPerson{Name: p.Name, Email: p.Email, At: date(p.At)}
}

type configIn struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
	where
	Key   *string `query:"key" doc:"as user.name"`
	Scope *string `query:"scope" doc:"local, global or system; left out: what holds, and local where one is removed"`
}

func (in *configIn) request(sp *httpapi.Spellings) git.ConfigRequest {
	return git.ConfigRequest{At: in.at(sp), Key: text(in.Key), Scope: text(in.Scope)}
}

func (a api) config(ctx context.Context, c *httpapi.Call, in *configIn) (v1.GitConfig, error) {
	var sp httpapi.Spellings
	r := in.request(&sp)
	return run(ctx, c, &sp, func(ctx context.Context) (v1.GitConfig, error) {
		value, err := a.Config(ctx, c.Caller, in.Ref, r)
		return v1.GitConfig{Key: r.Key, Value: value}, err
	})
}

func (a api) unsetConfig(ctx context.Context, c *httpapi.Call, in *configIn) (httpapi.None, error) {
	var sp httpapi.Spellings
	r := in.request(&sp)
	return none(ctx, c, &sp, func(ctx context.Context) error { return a.UnsetConfig(ctx, c.Caller, in.Ref, r) })
}

func (a api) setConfig(ctx context.Context, c *httpapi.Call, in *body[v1.GitSetConfig]) (httpapi.None, error) {
	var sp httpapi.Spellings
	b := &in.Body
	r := git.SetConfigRequest{ConfigRequest: git.ConfigRequest{At: at(&sp, b.GitAt), Key: b.Key, Scope: b.Scope}, Value: b.Value}
	return none(ctx, c, &sp, func(ctx context.Context) error { return a.SetConfig(ctx, c.Caller, in.Ref, r) })
}
