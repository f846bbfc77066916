// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/url"
	"strconv"

	v1 "sandpit.dev/api/v1"
)

// The methods below run git in a sandbox. Failures have a reason, [fault.Error.Reason], as git_rejected; package git
// of the server lists them in docs/git.md. Credentials are told to the repository's server alone.

// GitClone clones a repository into a directory of a sandbox, and returns when it is there.
func (c *Client) GitClone(ctx context.Context, ref string, r v1.GitClone) (*v1.GitCloned, error) {
	return gitPost[v1.GitCloned](ctx, c, ref, "clone", r)
}

// GitInit makes an empty repository. One that is there stays as it is.
func (c *Client) GitInit(ctx context.Context, ref string, r v1.GitInit) (*v1.GitInitialized, error) {
	return gitPost[v1.GitInitialized](ctx, c, ref, "init", r)
}

// GitStatusQuery says whose status is asked for.
type GitStatusQuery struct {
	v1.GitAt
	Untracked string // all, normal or no; empty: all
}

// GitStatus returns what has changed in a repository.
func (c *Client) GitStatus(ctx context.Context, ref string, q GitStatusQuery) (*v1.GitStatus, error) {
	v := gitQuery(q.GitAt)
	setText(v, "untracked", q.Untracked)
	return gitGet[v1.GitStatus](ctx, c, ref, "status", v)
}

// GitLogQuery says which commits are asked for.
type GitLogQuery struct {
	v1.GitAt
	Revision string   // the newest of them; empty: HEAD
	Files    []string // only commits that changed one of them
	Limit    int      // zero: the server's default
	Skip     int
}

// GitLog returns commits, the newest first.
func (c *Client) GitLog(ctx context.Context, ref string, q GitLogQuery) (*v1.GitLog, error) {
	v := gitQuery(q.GitAt)
	setText(v, "revision", q.Revision)
	for _, f := range q.Files {
		v.Add("file", f)
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Skip != 0 {
		v.Set("skip", strconv.Itoa(q.Skip))
	}
	return gitGet[v1.GitLog](ctx, c, ref, "log", v)
}

// GitAdd adds files, and what was deleted of them, to the next commit.
func (c *Client) GitAdd(ctx context.Context, ref string, r v1.GitAdd) error {
	return c.gitDo(ctx, "POST", ref, "add", nil, r)
}

// GitCommit makes a commit.
func (c *Client) GitCommit(ctx context.Context, ref string, r v1.GitCommit) (*v1.GitHead, error) {
	return gitPost[v1.GitHead](ctx, c, ref, "commit", r)
}

// GitPush pushes a branch to a server.
func (c *Client) GitPush(ctx context.Context, ref string, r v1.GitPush) (*v1.GitPushed, error) {
	return gitPost[v1.GitPushed](ctx, c, ref, "push", r)
}

// GitPull fetches a branch from a server, and merges it.
func (c *Client) GitPull(ctx context.Context, ref string, r v1.GitPull) (*v1.GitPulled, error) {
	return gitPost[v1.GitPulled](ctx, c, ref, "pull", r)
}

// GitCheckout checks a branch or a commit out.
func (c *Client) GitCheckout(ctx context.Context, ref string, r v1.GitCheckout) (*v1.GitHead, error) {
	return gitPost[v1.GitHead](ctx, c, ref, "checkout", r)
}

// GitReset puts a branch at another commit, or files of the index as they are there.
func (c *Client) GitReset(ctx context.Context, ref string, r v1.GitReset) (*v1.GitHead, error) {
	return gitPost[v1.GitHead](ctx, c, ref, "reset", r)
}

// GitRestore makes files as they were.
func (c *Client) GitRestore(ctx context.Context, ref string, r v1.GitRestore) error {
	return c.gitDo(ctx, "POST", ref, "restore", nil, r)
}

// GitBranches lists the branches of a repository, with remote also what is known of those of remotes.
func (c *Client) GitBranches(ctx context.Context, ref string, at v1.GitAt, remote bool) (*v1.GitBranches, error) {
	v := gitQuery(at)
	if remote {
		v.Set("remote", "true")
	}
	return gitGet[v1.GitBranches](ctx, c, ref, "branches", v)
}

// GitCreateBranch makes a branch.
func (c *Client) GitCreateBranch(ctx context.Context, ref string, r v1.GitCreateBranch) (*v1.GitBranch, error) {
	return gitPost[v1.GitBranch](ctx, c, ref, "branches", r)
}

// GitDeleteBranch deletes a branch, with force also one with commits that are in no other.
func (c *Client) GitDeleteBranch(ctx context.Context, ref string, at v1.GitAt, name string, force bool) error {
	v := gitQuery(at)
	v.Set("name", name)
	if force {
		v.Set("force", "true")
	}
	return c.gitDo(ctx, "DELETE", ref, "branches", v, nil)
}

// GitRemotes lists the remotes of a repository.
func (c *Client) GitRemotes(ctx context.Context, ref string, at v1.GitAt) ([]v1.GitRemote, error) {
	l, err := gitGet[v1.GitRemotes](ctx, c, ref, "remotes", gitQuery(at))
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// GitAddRemote adds a remote.
func (c *Client) GitAddRemote(ctx context.Context, ref string, r v1.GitAddRemote) (*v1.GitRemote, error) {
	return gitPost[v1.GitRemote](ctx, c, ref, "remotes", r)
}

// GitRemoveRemote removes a remote, with what is known of its branches.
func (c *Client) GitRemoveRemote(ctx context.Context, ref string, at v1.GitAt, name string) error {
	v := gitQuery(at)
	v.Set("name", name)
	return c.gitDo(ctx, "DELETE", ref, "remotes", v, nil)
}

// GitConfig returns a value of git's configuration. scope is local, global, system, or empty: what holds.
func (c *Client) GitConfig(ctx context.Context, ref string, at v1.GitAt, key, scope string) (string, error) {
	v := gitQuery(at)
	v.Set("key", key)
	setText(v, "scope", scope)
	got, err := gitGet[v1.GitConfig](ctx, c, ref, "config", v)
	if err != nil {
		return "", err
	}
	return got.Value, nil
}

// GitSetConfig sets a value of git's configuration.
func (c *Client) GitSetConfig(ctx context.Context, ref string, r v1.GitSetConfig) error {
	return c.gitDo(ctx, "PUT", ref, "config", nil, r)
}

// GitUnsetConfig removes a value of git's configuration. scope is local, global, system, or empty: local.
func (c *Client) GitUnsetConfig(ctx context.Context, ref string, at v1.GitAt, key, scope string) error {
	v := gitQuery(at)
	v.Set("key", key)
	setText(v, "scope", scope)
	return c.gitDo(ctx, "DELETE", ref, "config", v, nil)
}

func gitPost[T any](ctx context.Context, c *Client, ref, what string, body any) (*T, error) {
	out := new(T)
	if _, err := c.call(ctx, request{method: "POST", path: of(ref, "/git/"+what), body: body}, out); err != nil {
		return nil, err
	}
	return out, nil
}

func gitGet[T any](ctx context.Context, c *Client, ref, what string, q url.Values) (*T, error) {
	out := new(T)
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/git/"+what), query: q}, out); err != nil {
		return nil, err
	}
	return out, nil
}

func (c *Client) gitDo(ctx context.Context, method, ref, what string, q url.Values, body any) error {
	_, err := c.call(ctx, request{method: method, path: of(ref, "/git/"+what), query: q, body: body}, nil)
	return err
}

func gitQuery(at v1.GitAt) url.Values {
	v := make(url.Values)
	setText(v, "path", at.Path)
	setText(v, "as_user", at.AsUser)
	if at.TimeoutSeconds != nil {
		v.Set("timeout_seconds", strconv.FormatFloat(*at.TimeoutSeconds, 'f', -1, 64))
	}
	return v
}

func setText(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}
