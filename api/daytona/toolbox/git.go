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

// gitOperations returns the operations on repositories.
func (a *API) gitOperations() []httpapi.Operation {
	return []httpapi.Operation{
		op("toolboxGitClone", "POST /git/clone", http.StatusOK, gitError, a.gitClone),
		op("toolboxGitInit", "POST /git/init", http.StatusCreated, gitError, a.gitInit),
		op("toolboxGitStatus", "GET /git/status", http.StatusOK, gitError, a.gitStatus).ReadsContent(),
		op("toolboxGitHistory", "GET /git/history", http.StatusOK, gitError, a.gitHistory).ReadsContent(),
		op("toolboxGitAdd", "POST /git/add", http.StatusOK, gitError, a.gitAdd),
		op("toolboxGitCommit", "POST /git/commit", http.StatusOK, gitError, a.gitCommit),
		op("toolboxGitCheckout", "POST /git/checkout", http.StatusOK, gitError, a.gitCheckout),
		op("toolboxGitReset", "POST /git/reset", http.StatusOK, gitError, a.gitReset),
		op("toolboxGitRestore", "POST /git/restore", http.StatusOK, gitError, a.gitRestore),
		op("toolboxGitPush", "POST /git/push", http.StatusOK, gitError, a.gitPush),
		op("toolboxGitPull", "POST /git/pull", http.StatusOK, gitError, a.gitPull),
		op("toolboxGitBranches", "GET /git/branches", http.StatusOK, gitError, a.gitBranches).ReadsContent(),
		op("toolboxGitMakeBranch", "POST /git/branches", http.StatusCreated, gitError, a.gitMakeBranch),
		op("toolboxGitDeleteBranch", "DELETE /git/branches", http.StatusNoContent, gitError, a.gitDeleteBranch),
		op("toolboxGitRemotes", "GET /git/remotes", http.StatusOK, gitError, a.gitRemotes).ReadsContent(),
		op("toolboxGitAddRemote", "POST /git/remotes", http.StatusCreated, gitError, a.gitAddRemote),
		op("toolboxGitConfig", "GET /git/config", http.StatusOK, gitError, a.gitConfig).ReadsContent(),
		op("toolboxGitSetConfig", "POST /git/config", http.StatusOK, gitError, a.gitSetConfig),
		op("toolboxGitConfigUser", "POST /git/config/user", http.StatusOK, gitError, a.gitConfigUser),
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

func (in *gitChange) repository() git.At { return git.At{Path: httpapi.Given(in.Body.Path)} }

func (in *byPath) repository() git.At { return git.At{Path: httpapi.Given(in.Path)} }

// gitError adds to an error of git the code that clients have a class for.
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
	return withCode(err, code)
}

func (a *API) gitClone(ctx context.Context, c *httpapi.Call, in *gitClone) (wire.Nothing, error) {
	b := &in.Body
	r := git.CloneRequest{URL: b.URL, Path: b.Path, Branch: httpapi.Given(b.Branch), Commit: httpapi.Given(b.CommitID)}
	r.Username, r.Password, r.InsecureTLS = httpapi.Given(b.Username), httpapi.Given(b.Password), yes(b.InsecureTLS)
	if b.Depth != nil {
		r.Depth = *b.Depth
	}
	_, err := a.Git.Clone(ctx, c.Caller, in.Ref, r)
	return wire.Nothing{}, err
}

func yes(b *bool) bool { return b != nil && *b }

func (a *API) gitInit(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	_, err := a.Git.Init(ctx, c.Caller, in.Ref, git.InitRequest{At: in.repository(), Branch: httpapi.Given(in.Body.InitialBranch), Bare: yes(in.Body.Bare)})
	return wire.Nothing{}, err
}

// stateWords are the clients' names of the states of files.
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
	s, err := a.Git.Status(ctx, c.Caller, in.Ref, git.StatusRequest{At: in.repository()})
	if err != nil {
		return wire.GitStatus{}, err
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
	l, err := a.Git.Log(ctx, c.Caller, in.Ref, git.LogRequest{At: in.repository(), Limit: git.MaxLog})
	if err != nil {
		return nil, err
	}
	out := make([]wire.GitCommit, len(l.Commits))
	for i, one := range l.Commits {
		out[i] = wire.GitCommit{Hash: one.ID, Author: one.Author.Name, Email: one.Author.Email, Message: one.Message, Timestamp: one.Author.At.UTC().Format(time.RFC3339)}
	}
	return out, nil
}

func (a *API) gitAdd(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	r := git.AddRequest{At: in.repository(), Files: in.Body.Files}
	if len(r.Files) == 1 && r.Files[0] == "." {
		r.Files, r.All = nil, true
	}
	return wire.Nothing{}, a.Git.Add(ctx, c.Caller, in.Ref, r)
}

func (a *API) gitCommit(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.GitCommitted, error) {
	b := &in.Body
	made, err := a.Git.Commit(ctx, c.Caller, in.Ref, git.CommitRequest{
		At: in.repository(), Message: httpapi.Given(b.Message), Author: httpapi.Given(b.Author), Email: httpapi.Given(b.Email), AllowEmpty: yes(b.AllowEmpty),
	})
	return wire.GitCommitted{Hash: made.Commit}, err
}

func (a *API) gitCheckout(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	_, err := a.Git.Checkout(ctx, c.Caller, in.Ref, git.CheckoutRequest{At: in.repository(), Target: httpapi.Given(in.Body.Branch)})
	return wire.Nothing{}, err
}

func (a *API) gitReset(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	b := &in.Body
	_, err := a.Git.Reset(ctx, c.Caller, in.Ref, git.ResetRequest{At: in.repository(), Mode: httpapi.Given(b.Mode), Target: httpapi.Given(b.Target), Files: b.Files})
	return wire.Nothing{}, err
}

func (a *API) gitRestore(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	b := &in.Body
	return wire.Nothing{}, a.Git.Restore(ctx, c.Caller, in.Ref, git.RestoreRequest{
		At: in.repository(), Files: b.Files, Staged: yes(b.Staged), Worktree: yes(b.Worktree), Source: httpapi.Given(b.Source),
	})
}

func (a *API) gitPush(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	b := &in.Body
	r := git.PushRequest{At: in.repository(), Name: httpapi.Given(b.Remote), Branch: httpapi.Given(b.Branch), SetUpstream: yes(b.SetUpstream)}
	r.Username, r.Password = httpapi.Given(b.Username), httpapi.Given(b.Password)
	_, err := a.Git.Push(ctx, c.Caller, in.Ref, r)
	return wire.Nothing{}, err
}

func (a *API) gitPull(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	b := &in.Body
	r := git.PullRequest{At: in.repository(), Name: httpapi.Given(b.Remote), Branch: httpapi.Given(b.Branch)}
	r.Username, r.Password = httpapi.Given(b.Username), httpapi.Given(b.Password)
	_, err := a.Git.Pull(ctx, c.Caller, in.Ref, r)
	return wire.Nothing{}, err
}

func (a *API) gitBranches(ctx context.Context, c *httpapi.Call, in *byPath) (wire.GitBranches, error) {
	l, err := a.Git.Branches(ctx, c.Caller, in.Ref, git.BranchesRequest{At: in.repository()})
	if err != nil {
		return wire.GitBranches{}, err
	}
	out := wire.GitBranches{Branches: make([]string, len(l.Branches)), Current: l.Current}
	for i, b := range l.Branches {
		out.Branches[i] = b.Name
	}
	return out, nil
}

func (a *API) gitMakeBranch(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	_, err := a.Git.CreateBranch(ctx, c.Caller, in.Ref, git.CreateBranchRequest{At: in.repository(), Name: httpapi.Given(in.Body.Name)})
	return wire.Nothing{}, err
}

func (a *API) gitDeleteBranch(ctx context.Context, c *httpapi.Call, in *gitChange) (httpapi.None, error) {
	err := a.Git.DeleteBranch(ctx, c.Caller, in.Ref, git.DeleteBranchRequest{At: in.repository(), Name: httpapi.Given(in.Body.Name), Force: true})
	return httpapi.None{}, err
}

func (a *API) gitRemotes(ctx context.Context, c *httpapi.Call, in *byPath) (wire.GitRemotes, error) {
	all, err := a.Git.Remotes(ctx, c.Caller, in.Ref, in.repository())
	out := wire.GitRemotes{Remotes: make([]wire.GitRemote, len(all))}
	for i, r := range all {
		out.Remotes[i] = wire.GitRemote{Name: r.Name, URL: r.URL}
	}
	return out, err
}

func (a *API) gitAddRemote(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	b := &in.Body
	if yes(b.Fetch) {
		e := fault.InvalidField("fetch", "is true, and a remote is added without asking it here; pull fetches")
		e.Code = fault.Unsupported
		return wire.Nothing{}, e
	}
	_, err := a.Git.AddRemote(ctx, c.Caller, in.Ref, git.AddRemoteRequest{At: in.repository(), Name: httpapi.Given(b.Name), URL: httpapi.Given(b.URL), Overwrite: yes(b.Overwrite)})
	return wire.Nothing{}, err
}

type gitConfig struct {
	byPath
	Key   *string `query:"key"`
	Scope *string `query:"scope"`
}

func (a *API) gitConfig(ctx context.Context, c *httpapi.Call, in *gitConfig) (wire.GitValue, error) {
	value, err := a.Git.Config(ctx, c.Caller, in.Ref, git.ConfigRequest{At: in.repository(), Key: httpapi.Given(in.Key), Scope: httpapi.Given(in.Scope)})
	switch {
	case fault.ReasonOf(err) == git.ReasonNoValue:
		return wire.GitValue{}, nil
	case err != nil:
		return wire.GitValue{}, err
	}
	return wire.GitValue{Value: &value}, nil
}

func (a *API) gitSetConfig(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
	b := &in.Body
	return wire.Nothing{}, a.Git.SetConfig(ctx, c.Caller, in.Ref, git.SetConfigRequest{
		ConfigRequest: git.ConfigRequest{At: in.repository(), Key: httpapi.Given(b.Key), Scope: httpapi.Given(b.Scope)}, Value: httpapi.Given(b.Value),
	})
}

// gitConfigUser sets the author of commits; without a scope, for the user.
func (a *API) gitConfigUser(ctx context.Context, c *httpapi.Call, in *gitChange) (wire.Nothing, error) {
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
		r := git.SetConfigRequest{ConfigRequest: git.ConfigRequest{At: in.repository(), Key: v.key, Scope: scope}, Value: *v.value}
		if err := a.Git.SetConfig(ctx, c.Caller, in.Ref, r); err != nil {
			return wire.Nothing{}, err
		}
	}
	return wire.Nothing{}, nil
}
