// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/git"
)

// repositories are the tools of the group git.
func repositories() []toolset.Tool {
	return []toolset.Tool{
		gitInit(), gitStatus(), gitLog(), gitAdd(), gitCommit(), gitPush(), gitPull(), gitBranch(), gitCheckout(), gitReset(), gitRestore(), gitRemote(), gitConfig(),
	}
}

// paramsOf are the arguments that say in which repository a tool works, after those of its own.
func paramsOf(own ...toolset.Param) []toolset.Param {
	return append(own,
		toolset.Param{Name: "path", Kind: toolset.Text, About: "The repository's directory. Default /workspace.", Aliases: []string{"directory", "repo_path"}},
		paramSandbox(),
		toolset.Param{Name: "as_user", Kind: toolset.Text, Field: "user"},
	)
}

func paramsAsked() []toolset.Param {
	return []toolset.Param{
		{Name: "remote", Kind: toolset.Text, About: "Its name. Default origin."},
		{Name: "branch", Kind: toolset.Text, About: "Default the one that is checked out."},
		{Name: "username", Kind: toolset.Text},
		{Name: "password", Kind: toolset.Text, About: "Or token. The server alone is told.", Aliases: []string{"token"}},
		{Name: "ca", Kind: toolset.Text, About: "PEM that signs the server's certificate."},
		{Name: "insecure_tls", Kind: toolset.Boolean, About: "Take any certificate."},
	}
}

// remoteOf returns how a tool's call shows who it is to a server.
func remoteOf(a *toolset.Args) git.Remote {
	return git.Remote{Username: a.Text("username"), Password: a.Text("password"), CA: a.Text("ca"), InsecureTLS: a.Bool("insecure_tls", false)}
}

func paramFiles(required bool) toolset.Param {
	return toolset.Param{Name: "files", Kind: toolset.Text, Required: required, About: "Paths with commas between; no patterns.", Aliases: []string{"file", "paths"}}
}

func gitAt(c *toolset.Call) git.At {
	return git.At{Path: c.Args.Text("path"), User: c.Args.Text("as_user"), Timeout: min(toolset.DefaultTimeout, c.Server.MostCommandTime())}
}

// inRepository runs a tool's verb in a sandbox that is there already, and answers what it says.
func inRepository(do func(ctx context.Context, c *toolset.Call, ref string, at git.At) (*toolset.Answer, error)) func(context.Context, *toolset.Call) (*toolset.Answer, error) {
	return at(func(ctx context.Context, c *toolset.Call, ref string) (*toolset.Answer, error) {
		ans, err := do(ctx, c, ref, gitAt(c))
		if err != nil {
			return nil, c.CloneError(ctx, err)
		}
		return ans, nil
	})
}

func told(format string, args ...any) *toolset.Answer {
	return &toolset.Answer{Verdict: fmt.Sprintf(format, args...)}
}

// headText is what is checked out, in words.
func headText(commit, branch string) string {
	switch {
	case commit == "":
		return "there is no commit yet"
	case branch == "":
		return "commit " + commit + ", and no branch"
	}
	return "branch " + toolset.PrintablePath(branch) + ", commit " + commit
}

func gitInit() toolset.Tool {
	return toolset.Tool{
		Name: "git_init", Title: "Make a repository", Idempotent: true,
		About:   "Make an empty git repository. One that is there stays.",
		Params:  paramsOf(toolset.Param{Name: "branch", Kind: toolset.Text, About: "The first one."}),
		Example: `{"path": "app", "branch": "main"}`,
		Run: inRepository(func(ctx context.Context, c *toolset.Call, ref string, at git.At) (*toolset.Answer, error) {
			got, err := c.Git.Init(ctx, c.Caller, ref, git.InitRequest{At: at, Branch: c.Args.Text("branch")})
			if err != nil {
				return nil, err
			}
			if got.Existed {
				return told("the repository was there, branch %s", toolset.PrintablePath(got.Branch)), nil
			}
			return told("made a repository, branch %s", toolset.PrintablePath(got.Branch)), nil
		}),
	}
}

const mostStatus = 200 // files that an answer lists

func gitStatus() toolset.Tool {
	return toolset.Tool{
		Name: "git_status", Title: "Status of a repository", Idempotent: true,
		About:   "What has changed in a git repository: branch, upstream, files.",
		Params:  paramsOf(),
		Example: `{"path": "app"}`,
		Run: inRepository(func(ctx context.Context, c *toolset.Call, ref string, at git.At) (*toolset.Answer, error) {
			s, err := c.Git.Status(ctx, c.Caller, ref, git.StatusRequest{At: at})
			if err != nil {
				return nil, err
			}
			ans := told("%d files differ · %s", len(s.Files), headText(s.Commit, s.Branch))
			if s.Published {
				ans.Lines = append(ans.Lines, fmt.Sprintf("%d ahead of %s, %d behind", s.Ahead, toolset.PrintablePath(s.Upstream), s.Behind))
			}
			var b strings.Builder
			for i, f := range s.Files {
				if i == mostStatus {
					fmt.Fprintf(&b, "… and %d more\n", len(s.Files)-i)
					break
				}
				fmt.Fprintf(&b, "index %s, worktree %s: %s\n", f.Index, f.Worktree, toolset.PrintablePath(f.Path))
			}
			if b.Len() > 0 {
				ans.Sections = []toolset.Section{{Title: "files", Body: b.String()}}
			}
			return ans, nil
		}),
	}
}

const mostMessage = 2000 // characters of a commit's message

func gitLog() toolset.Tool {
	return toolset.Tool{
		Name: "git_log", Title: "Commits of a repository", Idempotent: true,
		About: "Commits of a git repository, newest first.",
		Params: paramsOf(
			toolset.Param{Name: "revision", Kind: toolset.Text, About: "Branch, tag or commit. Default HEAD.", Aliases: []string{"ref"}},
			toolset.Param{Name: "limit", Kind: toolset.Integer, Min: 1, Max: 100, About: "Default 10."},
			toolset.Param{Name: "skip", Kind: toolset.Integer, Min: 0, Max: 1_000_000},
		),
		Example: `{"path": "app", "limit": 5}`,
		Run: inRepository(func(ctx context.Context, c *toolset.Call, ref string, at git.At) (*toolset.Answer, error) {
			r := git.LogRequest{At: at, Revision: c.Args.Text("revision"), Limit: int(c.Args.Number("limit", 10)), Skip: int(c.Args.Number("skip", 0))}
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			l, err := c.Git.Log(ctx, c.Caller, ref, r)
			if err != nil {
				return nil, err
			}
			ans := told("%d commits", len(l.Commits))
			if l.More {
				ans.Lines = append(ans.Lines, fmt.Sprintf("there are more: skip %d goes on", r.Skip+len(l.Commits)))
			}
			for _, x := range l.Commits {
				title := x.ID
				if !x.Author.At.IsZero() {
					title += " · " + toolset.TimeText(x.Author.At)
				}
				ans.Sections = append(ans.Sections, toolset.Section{Title: title, Body: x.Author.Name + " <" + x.Author.Email + ">\n" + clipText(x.Message, mostMessage) + "\n"})
			}
			return ans, nil
		}),
	}
}

func clipText(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func gitAdd() toolset.Tool {
	return toolset.Tool{
		Name: "git_add", Title: "Add files to the next commit", Idempotent: true,
		About:   "Add files to the next commit: files, or all that has changed.",
		Params:  paramsOf(paramFiles(false)),
		Example: `{"path": "app", "files": "main.go, docs"}`,
		Run: inRepository(func(ctx context.Context, c *toolset.Call, ref string, at git.At) (*toolset.Answer, error) {
			files := c.Args.List("files")
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			return told("added"), c.Git.Add(ctx, c.Caller, ref, git.AddRequest{At: at, Files: files, All: len(files) == 0})
		}),
	}
}

func gitCommit() toolset.Tool {
	return toolset.Tool{
		Name: "git_commit", Title: "Commit",
		About: "Commit what was added. The repository's hooks run.",
		Params: paramsOf(
			toolset.Param{Name: "message", Kind: toolset.Text, Required: true},
			toolset.Param{Name: "all", Kind: toolset.Boolean, About: "Add what has changed of known files first."},
			toolset.Param{Name: "author", Kind: toolset.Text, About: "Name; default user.name."},
			toolset.Param{Name: "email", Kind: toolset.Text},
			toolset.Param{Name: "amend", Kind: toolset.Boolean},
		),
		Example: `{"path": "app", "message": "Say hello", "author": "Ann", "email": "ann@example.org"}`,
		Run: inRepository(func(ctx context.Context, c *toolset.Call, ref string, at git.At) (*toolset.Answer, error) {
			a := c.Args
			r := git.CommitRequest{At: at, Message: a.Text("message"), All: a.Bool("all", false), Author: a.Text("author"), Email: a.Text("email"), Amend: a.Bool("amend", false)}
			if err := a.Err(); err != nil {
				return nil, err
			}
			got, err := c.Git.Commit(ctx, c.Caller, ref, r)
			if err != nil {
				return nil, err
			}
			return told("committed · %s", headText(got.Commit, got.Branch)), nil
		}),
	}
}

func gitPush() toolset.Tool {
	return toolset.Tool{
		Name: "git_push", Title: "Push a branch", OpenWorld: true, Destructive: true,
		About: "Push a branch to a server.",
		Params: paramsOf(append(paramsAsked(),
			toolset.Param{Name: "url", Kind: toolset.Text, About: "Where the remote has to be, else nothing is sent."},
			toolset.Param{Name: "set_upstream", Kind: toolset.Boolean},
			toolset.Param{Name: "force", Kind: toolset.Boolean, About: "Whatever the server has."},
		)...),
		Example: `{"path": "app", "set_upstream": true}`,
		Run: inRepository(func(ctx context.Context, c *toolset.Call, ref string, at git.At) (*toolset.Answer, error) {
			a := c.Args
			r := git.PushRequest{
				At: at, Remote: remoteOf(a), Name: a.Text("remote"), Branch: a.Text("branch"), URL: a.Text("url"),
				SetUpstream: a.Bool("set_upstream", false), Force: a.Bool("force", false), Progress: c.Progress.Wrote,
			}
			if err := a.Err(); err != nil {
				return nil, err
			}
			got, err := c.Git.Push(ctx, c.Caller, ref, r)
			if err != nil {
				return nil, err
			}
			ans := told("pushed to %s", toolset.PrintablePath(got.URL))
			for _, x := range got.Refs {
				ans.Lines = append(ans.Lines, toolset.PrintablePath(x.Name)+": "+string(x.State))
			}
			return ans, nil
		}),
	}
}

func gitPull() toolset.Tool {
	return toolset.Tool{
		Name: "git_pull", Title: "Pull a branch", OpenWorld: true,
		About:   "Fetch a branch from a server, and merge it. Conflicts stay in the files; a rebase that conflicts is undone.",
		Params:  paramsOf(append(paramsAsked(), toolset.Param{Name: "mode", Kind: toolset.Text, Enum: git.PullModes(), About: "Default merge."})...),
		Example: `{"path": "app", "mode": "rebase"}`,
		Run: inRepository(func(ctx context.Context, c *toolset.Call, ref string, at git.At) (*toolset.Answer, error) {
			a := c.Args
			r := git.PullRequest{
				At: at, Remote: remoteOf(a), Name: a.Text("remote"), Branch: a.Text("branch"), Mode: a.Text("mode"),
				Progress: c.Progress.Wrote,
			}
			if err := a.Err(); err != nil {
				return nil, err
			}
			got, err := c.Git.Pull(ctx, c.Caller, ref, r)
			if err != nil {
				return nil, err
			}
			if got.Before == got.Commit {
				return told("nothing new · commit %s", got.Commit), nil
			}
			return told("pulled %s of %s · commit %s", toolset.PrintablePath(got.Branch), toolset.PrintablePath(got.Remote), got.Commit), nil
		}),
	}
}
