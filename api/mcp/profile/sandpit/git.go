// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/git"
)

func gitClone() toolset.Tool {
	return toolset.Tool{
		Name: "git_clone", Title: "Clone a repository", OpenWorld: true,
		About: "Clone a git repository into a new directory of a sandbox. Of credentials only the repository's server is told.",
		Params: []toolset.Param{
			{Name: "url", Kind: toolset.Text, Required: true, About: "By https or ssh, or a path inside.", Aliases: []string{"repository", "repo"}},
			paramSandbox(),
			{Name: "path", Kind: toolset.Text, About: "Directory, by default of the repository's name.", Aliases: []string{"directory", "dest"}},
			{Name: "branch", Kind: toolset.Text, About: "Or tag.", Aliases: []string{"ref", "tag"}},
			{Name: "commit", Kind: toolset.Text, About: "Id to check out.", Aliases: []string{"commit_id", "commitId"}},
			{Name: "depth", Kind: toolset.Number, Min: 1, Max: 1_000_000, About: "Commits of history. Default all."},
			{Name: "username", Kind: toolset.Text},
			{Name: "password", Kind: toolset.Text, About: "Or token.", Aliases: []string{"token"}},
		},
		Example: `{"url": "https://github.com/octocat/Spoon-Knife", "depth": 1}`,
		Run:     runGitClone,
	}
}

// clonedShape is the structured answer of git_clone.
type clonedShape struct {
	Sandbox string `json:"sandbox"`
	URL     string `json:"url"`
	Path    string `json:"path"`
	Commit  string `json:"commit,omitempty"`
	Branch  string `json:"branch,omitempty"`
}

func runGitClone(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	r := git.CloneRequest{
		URL: a.Text("url"), Path: a.Text("path"), Branch: a.Text("branch"), Commit: a.Text("commit"), Depth: int(a.Number("depth", 0)),
		Remote:  git.Remote{Username: a.Text("username"), Password: a.Text("password")},
		Timeout: min(toolset.DefaultTimeout, c.Server.MostCommandTime()), Progress: c.Progress.Wrote,
	}
	ref, err := place(ctx, c, true)
	if err != nil {
		return nil, err
	}
	got, err := c.Git.Clone(ctx, c.Caller, ref, r)
	if err != nil {
		return nil, c.CloneError(ctx, err)
	}
	ans := &toolset.Answer{Verdict: "cloned " + toolset.PrintablePath(got.URL) + " into " + toolset.PrintablePath(got.Path) + " · sandbox " + ref}
	switch {
	case got.Commit == "":
		ans.Lines = append(ans.Lines, "it has no commit yet")
	case got.Branch == "":
		ans.Lines = append(ans.Lines, "commit "+got.Commit+" is checked out, and no branch")
	default:
		ans.Lines = append(ans.Lines, "branch "+toolset.PrintablePath(got.Branch)+", commit "+got.Commit)
	}
	ans.Structured = clonedShape{ref, got.URL, got.Path, got.Commit, got.Branch}
	return ans, nil
}
