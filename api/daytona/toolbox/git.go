// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"net/http"
	"time"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/fault"
	"sandpit.dev/git"
)

// gitOperations are those on repositories.
func (a *API) gitOperations() []httpapi.Operation {
	return []httpapi.Operation{
		httpapi.Op("toolboxGitClone", "POST /git/clone", "", http.StatusOK, a.gitClone),
		httpapi.Op("toolboxGitInit", "POST /git/init", "", http.StatusCreated, a.gitInit),
		httpapi.Op("toolboxGitStatus", "GET /git/status", "", http.StatusOK, a.gitStatus).ReadsContent(),
		httpapi.Op("toolboxGitHistory", "GET /git/history", "", http.StatusOK, a.gitHistory).ReadsContent(),
		httpapi.Op("toolboxGitAdd", "POST /git/add", "", http.StatusOK, a.gitAdd),
		httpapi.Op("toolboxGitCommit", "POST /git/commit", "", http.StatusOK, a.gitCommit),
		httpapi.Op("toolboxGitCheckout", "POST /git/checkout", "", http.StatusOK, a.gitCheckout),
		httpapi.Op("toolboxGitReset", "POST /git/reset", "", http.StatusOK, a.gitReset),
		httpapi.Op("toolboxGitRestore", "POST /git/restore", "", http.StatusOK, a.gitRestore),
		httpapi.Op("toolboxGitPush", "POST /git/push", "", http.StatusOK, a.gitPush),
		httpapi.Op("toolboxGitPull", "POST /git/pull", "", http.StatusOK, a.gitPull),
		httpapi.Op("toolboxGitBranches", "GET /git/branches", "", http.StatusOK, a.gitBranches).ReadsContent(),
		httpapi.Op("toolboxGitMakeBranch", "POST /git/branches", "", http.StatusCreated, a.gitMakeBranch),
		httpapi.Op("toolboxGitDeleteBranch", "DELETE /git/branches", "", http.StatusNoContent, a.gitDeleteBranch),
		httpapi.Op("toolboxGitRemotes", "GET /git/remotes", "", http.StatusOK, a.gitRemotes).ReadsContent(),
		httpapi.Op("toolboxGitAddRemote", "POST /git/remotes", "", http.StatusCreated, a.gitAddRemote),
		httpapi.Op("toolboxGitConfig", "GET /git/config", "", http.StatusOK, a.gitConfig).ReadsContent(),
		httpapi.Op("toolboxGitSetConfig", "POST /git/config", "", http.StatusOK, a.gitSetConfig),
		httpapi.Op("toolboxGitConfigUser", "POST /git/config/user", "", http.StatusOK, a.gitConfigUser),
	}
}

type gitClone struct {
	Ref  string `path:"id"`
	Body wire.GitClone
}

type gitChange struct {
	Ref  string `path:"id"`
	Body wire.GitChange
}

// at is the repository of a request.
func (in *gitChange) at() git.At { return git.At{Path: httpapi.Given(in.Body.Path)} }

// gitError gives an error of git's the code that clients have a class for.
func gitError(err error) error {
	codes := map[string]string{
		git.ReasonCredentials: wire.CodeGitAuthFailed, git.ReasonNoRepository: wire.CodeGitRepoNotFound, git.ReasonNoBranch: wire.CodeGitBranchNotFound,
		git.ReasonBranchExists: wire.CodeGitBranchExists, git.ReasonRejected: wire.CodeGitPushRejected, git.ReasonDiverged: wire.CodeGitPushRejected,
		git.ReasonDirty: wire.CodeGitDirty, git.ReasonConflict: wire.CodeGitConflict, git.ReasonUnreachable: wire.CodeGitTransport, git.ReasonRefused: wire.CodeGitRemoteRejected,
	}
	code, ok := codes[fault.ReasonOf(err)]
	if !ok {
		return err
	}
	e := *fault.As(err)
	return (&e).WithReason(code)
}

// done is the answer to what has none but that it was done.
func done(ctx context.Context, err error) (wire.Nothing, error) {
	return wire.Nothing{}, gitError(httpapi.Cause(ctx, err))
}

func (a *API) gitClone(ctx context.Context, c *httpapi.Call, in *gitClone) (wire.Nothing, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	b := &in.Body
	r := git.CloneRequest{URL: b.URL, Path: b.Path, Branch: httpapi.Given(b.Branch), Commit: httpapi.Given(b.CommitID)}
	r.Username, r.Password, r.InsecureTLS = httpapi.Given(b.Username), httpapi.Given(b.Password), yes(b.InsecureTLS)
	if b.Depth != nil {
		r.Depth = *b.Depth
	}
	_, err := a.Git.Clone(ctx, c.Caller, in.Ref, r)
	return done(ctx, err)
}

func yes(b *bool) bool { return b != nil && *b }

func (a *API) gitInit(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	_, err := a.Git.Init(ctx, c.Caller, in.Ref, git.InitRequest{At: in.at(), Branch: httpapi.Given(in.Body.InitialBranch), Bare: yes(in.Body.Bare)})
	return done(ctx, err)
}

// stateWords are the states of files in the clients' words.
func stateWord(s git.FileState) string {
	switch s {
	case git.Modified, git.TypeChanged:
		return "Modified"
	case git.Added:
		return "Added"
	case git.Deleted:
		return "Deleted"
	case git.Renamed:
		return "Renamed"
	case git.Copied:
		return "Copied"
	case git.Unmerged:
		return "Updated but unmerged"
	case git.Untracked:
		return "Untracked"
	case git.Unmodified:
	}
	return "Unmodified"
}

func (a *API) gitStatus(ctx context.Context, c *httpapi.Call, in *byPath) (wire.GitStatus, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	s, err := a.Git.Status(ctx, c.Caller, in.Ref, git.StatusRequest{At: git.At{Path: httpapi.Given(in.Path)}})
	if err != nil {
		return wire.GitStatus{}, gitError(httpapi.Cause(ctx, err))
	}
	out := wire.GitStatus{
		CurrentBranch: s.Branch, FileStatus: make([]wire.GitFileStatus, 0, len(s.Files)), Ahead: s.Ahead, Behind: s.Behind,
		BranchPublished: s.Published, Detached: s.Detached(), Upstream: s.Upstream,
	}
	if s.Detached() {
		out.CurrentBranch = "HEAD"
	}
	for _, f := range s.Files {
		out.FileStatus = append(out.FileStatus, wire.GitFileStatus{Name: f.Path, Staging: stateWord(f.Index), Worktree: stateWord(f.Worktree), Extra: f.From})
	}
	return out, nil
}

func (a *API) gitHistory(ctx context.Context, c *httpapi.Call, in *byPath) ([]wire.GitCommit, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	l, err := a.Git.Log(ctx, c.Caller, in.Ref, git.LogRequest{At: git.At{Path: httpapi.Given(in.Path)}, Limit: git.MaxLog})
	if err != nil {
		return nil, gitError(httpapi.Cause(ctx, err))
	}
	out := make([]wire.GitCommit, len(l.Commits))
	for i, one := range l.Commits {
		out[i] = wire.GitCommit{Hash: one.ID, Author: one.Author.Name, Email: one.Author.Email, Message: one.Message, Timestamp: one.Author.At.UTC().Format(time.RFC3339)}
	}
	return out, nil
}

func (a *API) gitAdd(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	r := git.AddRequest{At: in.at(), Files: in.Body.Files}
	if len(r.Files) == 1 && r.Files[0] == "." {
		r.Files, r.All = nil, true
	}
	return done(ctx, a.Git.Add(ctx, c.Caller, in.Ref, r))
}

func (a *API) gitCommit(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.GitCommitted, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	b := &in.Body
	made, err := a.Git.Commit(ctx, c.Caller, in.Ref, git.CommitRequest{
		At: in.at(), Message: httpapi.Given(b.Message), Author: httpapi.Given(b.Author), Email: httpapi.Given(b.Email), AllowEmpty: yes(b.AllowEmpty),
	})
	return wire.GitCommitted{Hash: made.Commit}, gitError(httpapi.Cause(ctx, err))
}

func (a *API) gitCheckout(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	_, err := a.Git.Checkout(ctx, c.Caller, in.Ref, git.CheckoutRequest{At: in.at(), Target: httpapi.Given(in.Body.Branch)})
	return done(ctx, err)
}

func (a *API) gitReset(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	b := &in.Body
	_, err := a.Git.Reset(ctx, c.Caller, in.Ref, git.ResetRequest{At: in.at(), Mode: httpapi.Given(b.Mode), Target: httpapi.Given(b.Target), Files: b.Files})
	return done(ctx, err)
}

func (a *API) gitRestore(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	b := &in.Body
	return done(ctx, a.Git.Restore(ctx, c.Caller, in.Ref, git.RestoreRequest{
		At: in.at(), Files: b.Files, Staged: yes(b.Staged), Worktree: yes(b.Worktree), Source: httpapi.Given(b.Source),
	}))
}

func (a *API) gitPush(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	b := &in.Body
	r := git.PushRequest{At: in.at(), Name: httpapi.Given(b.Remote), Branch: httpapi.Given(b.Branch), SetUpstream: yes(b.SetUpstream)}
	r.Username, r.Password = httpapi.Given(b.Username), httpapi.Given(b.Password)
	_, err := a.Git.Push(ctx, c.Caller, in.Ref, r)
	return done(ctx, err)
}

func (a *API) gitPull(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	b := &in.Body
	r := git.PullRequest{At: in.at(), Name: httpapi.Given(b.Remote), Branch: httpapi.Given(b.Branch)}
	r.Username, r.Password = httpapi.Given(b.Username), httpapi.Given(b.Password)
	_, err := a.Git.Pull(ctx, c.Caller, in.Ref, r)
	return done(ctx, err)
}

func (a *API) gitBranches(ctx context.Context, c *httpapi.Call, in *byPath) (wire.GitBranches, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	l, err := a.Git.Branches(ctx, c.Caller, in.Ref, git.BranchesRequest{At: git.At{Path: httpapi.Given(in.Path)}})
	if err != nil {
		return wire.GitBranches{}, gitError(httpapi.Cause(ctx, err))
	}
	out := wire.GitBranches{Branches: make([]string, len(l.Branches)), Current: l.Current}
	for i, b := range l.Branches {
		out.Branches[i] = b.Name
	}
	return out, nil
}

func (a *API) gitMakeBranch(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	_, err := a.Git.CreateBranch(ctx, c.Caller, in.Ref, git.CreateBranchRequest{At: in.at(), Name: httpapi.Given(in.Body.Name)})
	return done(ctx, err)
}

func (a *API) gitDeleteBranch(ctx context.Context, c *httpapi.Call, in *gitChange) (httpapi.None, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	err := a.Git.DeleteBranch(ctx, c.Caller, in.Ref, git.DeleteBranchRequest{At: in.at(), Name: httpapi.Given(in.Body.Name), Force: true})
	return httpapi.None{}, gitError(httpapi.Cause(ctx, err))
}

func (a *API) gitRemotes(ctx context.Context, c *httpapi.Call, in *byPath) (wire.GitRemotes, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	all, err := a.Git.Remotes(ctx, c.Caller, in.Ref, git.At{Path: httpapi.Given(in.Path)})
	out := wire.GitRemotes{Remotes: make([]wire.GitRemote, len(all))}
	for i, r := range all {
		out.Remotes[i] = wire.GitRemote{Name: r.Name, URL: r.URL}
	}
	return out, gitError(httpapi.Cause(ctx, err))
}

func (a *API) gitAddRemote(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	b := &in.Body
	if yes(b.Fetch) {
		e := fault.InvalidField("fetch", "is true, and a remote is added without asking it here; pull fetches")
		e.Code = fault.Unsupported
		return wire.Nothing{}, e
	}
	ctx, end := c.Bound(ctx)
	defer end()
	_, err := a.Git.AddRemote(ctx, c.Caller, in.Ref, git.AddRemoteRequest{At: in.at(), Name: httpapi.Given(b.Name), URL: httpapi.Given(b.URL), Overwrite: yes(b.Overwrite)})
	return done(ctx, err)
}

type gitConfig struct {
	byPath
	Key   *string `query:"key"`
	Scope *string `query:"scope"`
}

func (a *API) gitConfig(ctx context.Context, c *httpapi.Call, in *gitConfig) (wire.GitValue, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	value, err := a.Git.Config(ctx, c.Caller, in.Ref, git.ConfigRequest{At: git.At{Path: httpapi.Given(in.Path)}, Key: httpapi.Given(in.Key), Scope: httpapi.Given(in.Scope)})
	switch {
	case fault.ReasonOf(err) == git.ReasonNoValue:
		return wire.GitValue{}, nil
	case err != nil:
		return wire.GitValue{}, gitError(httpapi.Cause(ctx, err))
	}
	return wire.GitValue{Value: &value}, nil
}

func (a *API) gitSetConfig(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	b := &in.Body
	return done(ctx, a.Git.SetConfig(ctx, c.Caller, in.Ref, git.SetConfigRequest{
		ConfigRequest: git.ConfigRequest{At: in.at(), Key: httpapi.Given(b.Key), Scope: httpapi.Given(b.Scope)}, Value: httpapi.Given(b.Value),
	}))
}

// gitConfigUser sets who makes commits: of the user, where nothing else is said.
func (a *API) gitConfigUser(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	b := &in.Body
	scope := httpapi.Given(b.Scope)
	if scope == "" {
		scope = "global"
	}
	for _, v := range []struct {
		key   string
		value *string
	}{{"user.name", b.Name}, {"user.email", b.Email}} {
		if v.value == nil {
			return wire.Nothing{}, fault.InvalidField(v.key[len("user."):], "is missing")
		}
		r := git.SetConfigRequest{ConfigRequest: git.ConfigRequest{At: in.at(), Key: v.key, Scope: scope}, Value: *v.value}
		if err := a.Git.SetConfig(ctx, c.Caller, in.Ref, r); err != nil {
			return done(ctx, err)
		}
	}
	return wire.Nothing{}, nil
}
