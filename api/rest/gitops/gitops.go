// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package gitops is REST's operations on repositories in sandboxes.
package gitops

import (
	"context"
	"math"
	"net/http"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/git"
)

// api is what the operations are made of.
type api struct{ service.Git }

// Operations returns the table.
func Operations(g service.Git) []httpapi.Operation {
	a := api{g}
	const at = " /sandboxes/{id}/git/"
	return []httpapi.Operation{
		httpapi.Op("gitClone", "POST"+at+"clone", "Clone a repository into a directory of a sandbox, and answer when it is there. Credentials are told to the repository's server alone, and kept nowhere.", http.StatusOK, a.clone),
		httpapi.Op("gitInit", "POST"+at+"init", "Make an empty repository. One that is there stays as it is.", http.StatusOK, a.init),
		httpapi.Op("gitStatus", "GET"+at+"status", "What has changed in a repository.", http.StatusOK, a.status),
		httpapi.Op("gitLog", "GET"+at+"log", "The commits of a repository, newest first.", http.StatusOK, a.log),
		httpapi.Op("gitAdd", "POST"+at+"add", "Add files, and what was deleted of them, to the next commit.", http.StatusNoContent, a.add),
		httpapi.Op("gitCommit", "POST"+at+"commit", "Make a commit.", http.StatusOK, a.commit),
		httpapi.Op("gitPush", "POST"+at+"push", "Push a branch to a server. Credentials are told to it alone, and kept nowhere.", http.StatusOK, a.push),
		httpapi.Op("gitPull", "POST"+at+"pull", "Fetch a branch from a server, and merge it. Credentials are told to the server alone, and kept nowhere.", http.StatusOK, a.pull),
		httpapi.Op("gitCheckout", "POST"+at+"checkout", "Check a branch or a commit out.", http.StatusOK, a.checkout),
		httpapi.Op("gitReset", "POST"+at+"reset", "Put a branch at another commit, or files of the index as they are there.", http.StatusOK, a.reset),
		httpapi.Op("gitRestore", "POST"+at+"restore", "Make files as they were.", http.StatusNoContent, a.restore),
		httpapi.Op("gitBranches", "GET"+at+"branches", "List the branches of a repository.", http.StatusOK, a.branches),
		httpapi.Op("gitCreateBranch", "POST"+at+"branches", "Make a branch.", http.StatusCreated, a.createBranch),
		httpapi.Op("gitDeleteBranch", "DELETE"+at+"branches", "Delete a branch.", http.StatusNoContent, a.deleteBranch),
		httpapi.Op("gitRemotes", "GET"+at+"remotes", "List the remotes of a repository.", http.StatusOK, a.remotes),
		httpapi.Op("gitAddRemote", "POST"+at+"remotes", "Add a remote.", http.StatusCreated, a.addRemote),
		httpapi.Op("gitRemoveRemote", "DELETE"+at+"remotes", "Remove a remote, with what is known of its branches.", http.StatusNoContent, a.removeRemote),
		httpapi.Op("gitConfig", "GET"+at+"config", "Get a value of git's configuration.", http.StatusOK, a.config),
		httpapi.Op("gitSetConfig", "PUT"+at+"config", "Set a value of git's configuration.", http.StatusNoContent, a.setConfig).Example(v1.GitSetConfig{Key: "user.name", Value: "Ann", Scope: "global"}),
		httpapi.Op("gitUnsetConfig", "DELETE"+at+"config", "Remove a value of git's configuration.", http.StatusNoContent, a.unsetConfig),
	}
}

// run bounds a call, runs it and says for what reason it ended.
func run[T any](ctx context.Context, c *httpapi.Call, sp *httpapi.Spellings, do func(context.Context) (T, error)) (T, error) {
	var zero T
	if err := sp.Err(); err != nil {
		return zero, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	out, err := do(ctx)
	return out, httpapi.Cause(ctx, err)
}

// none is run for what answers nothing.
func none(ctx context.Context, c *httpapi.Call, sp *httpapi.Spellings, do func(context.Context) error) (httpapi.None, error) {
	return run(ctx, c, sp, func(ctx context.Context) (httpapi.None, error) { return httpapi.None{}, do(ctx) })
}

// at reads where git runs.
func at(sp *httpapi.Spellings, a v1.GitAt) git.At {
	return git.At{Path: a.Path, User: a.AsUser, Timeout: span(sp, a.TimeoutSeconds)}
}

// where is the part of queries that says where git runs.
type where struct {
	Path           *string  `query:"path" doc:"a directory of the repository, below /workspace if it is relative; left out: /workspace itself"`
	AsUser         *string  `query:"as_user" doc:"an account of the sandbox, by name or number; left out: its own user"`
	TimeoutSeconds *float64 `query:"timeout_seconds" doc:"git is ended then; left out: 30 minutes, or the most that the server gives a command"`
}

func (w where) at(sp *httpapi.Spellings) git.At {
	return git.At{Path: text(w.Path), User: text(w.AsUser), Timeout: span(sp, w.TimeoutSeconds)}
}

func login(l v1.GitLogin) git.Remote {
	return git.Remote{Username: text(l.Username), Password: text(l.Password), Token: text(l.Token), CA: l.CA, InsecureTLS: l.InsecureTLS}
}

const maxSeconds = 7 * 24 * 3600

// span reads a time limit; the verbs know how long it may be.
func span(sp *httpapi.Spellings, seconds *float64) time.Duration {
	switch {
	case seconds == nil:
		return 0
	case math.IsNaN(*seconds) || *seconds <= 0 || *seconds > maxSeconds:
		sp.Add("timeout_seconds", "%g is not more than 0 and at most %d seconds; leave it out for the default", *seconds, maxSeconds)
		return 0
	}
	return time.Duration(*seconds * float64(time.Second))
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func date(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
