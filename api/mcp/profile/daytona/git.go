// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/git"
)

func clone() toolset.Tool {
	return toolset.Tool{
		Name: "git_clone", Title: "Clone a repository", Destructive: true, OpenWorld: true,
		About: "Clone a Git repository into a sandbox.",
		Params: []toolset.Param{
			words().Which(),
			{Name: "url", Kind: toolset.Text, Required: true, About: "Of the repository.", Aliases: []string{"repository", "repo"}},
			{Name: "path", Kind: toolset.Text, Field: "path", About: "Directory to clone into, default /workspace itself, which has to be empty then."},
			{Name: "branch", Kind: toolset.Text, About: "Branch or tag."},
			{Name: "commitId", Kind: toolset.Text, Field: "commit", About: "Commit to check out.", Aliases: []string{"commit_id", "commit"}},
			{Name: "username", Kind: toolset.Text, About: "For a repository that asks who it is, by HTTP."},
			{Name: "password", Kind: toolset.Text, About: "Password or token of username. Programs in the sandbox may see it."},
		},
		Example: `{"id": "an-id", "url": "https://example.org/app.git", "path": "app"}`,
		Run:     runClone,
	}
}

func runClone(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a, w := c.Args, words()
	w.In(c)
	r := git.CloneRequest{
		URL: needs(a, "url"), Path: a.Text("path"), Branch: a.Text("branch"), Commit: a.Text("commitId"),
		Remote:  git.Remote{Username: a.Text("username"), Password: a.Text("password")},
		Timeout: min(toolset.DefaultTimeout, c.Server.MostCommandTime()), Progress: c.Progress.Wrote,
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	if r.Path == "" {
		r.Path = "."
	}
	got, err := c.Git.Clone(ctx, c.Caller, c.Ref, r)
	if err != nil {
		return nil, c.CloneError(ctx, err)
	}
	return toolset.TextAnswer("Cloned repository: " + got.URL + " to " + toolset.PrintablePath(r.Path)), nil
}
