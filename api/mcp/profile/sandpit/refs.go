// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/git"
)

func gitBranch() toolset.Tool {
	return toolset.Tool{
		Name: "git_branch", Title: "Branches", Destructive: true,
		About: "List branches; with name make one, with delete delete it.",
		Params: paramsOf(
			toolset.Param{Name: "branch", Kind: toolset.Text, Field: "name"},
			toolset.Param{Name: "start", Kind: toolset.Text, About: "Where it begins. Default HEAD."},
			toolset.Param{Name: "delete", Kind: toolset.Boolean},
			toolset.Param{Name: "force", Kind: toolset.Boolean},
		),
		Example: `{"path": "app", "branch": "topic"}`,
		Run: inRepository(func(ctx context.Context, c *toolset.Call, ref string, at git.At) (*toolset.Answer, error) {
			a := c.Args
			name, start, del, force := a.Text("branch"), a.Text("start"), a.Bool("delete", false), a.Bool("force", false)
			if err := a.Err(); err != nil {
				return nil, err
			}
			switch {
			case del:
				return told("deleted the branch"), c.Git.DeleteBranch(ctx, c.Caller, ref, git.DeleteBranchRequest{At: at, Name: name, Force: force})
			case name != "":
				b, err := c.Git.CreateBranch(ctx, c.Caller, ref, git.CreateBranchRequest{At: at, Name: name, Start: start, Force: force})
				return told("made the %s", headText(b.Commit, b.Name)), err
			}
			l, err := c.Git.Branches(ctx, c.Caller, ref, git.BranchesRequest{At: at, Remote: true})
			if err != nil {
				return nil, err
			}
			ans := told("%d branches", len(l.Branches))
			var b strings.Builder
			for i, x := range l.Branches {
				if i == mostStatus {
					b.WriteString("… and more\n")
					break
				}
				b.WriteString(toolset.PrintablePath(x.Name) + " " + x.Commit)
				if x.Current {
					b.WriteString(" (checked out)")
				}
				b.WriteByte('\n')
			}
			if b.Len() > 0 {
				ans.Sections = []toolset.Section{{Title: "branches", Body: b.String()}}
			}
			return ans, nil
		}),
	}
}

func gitCheckout() toolset.Tool {
	return toolset.Tool{
		Name: "git_checkout", Title: "Check out", Destructive: true,
		About: "Check a branch out, or with detach any commit.",
		Params: paramsOf(
			toolset.Param{Name: "target", Kind: toolset.Text, Required: true, Aliases: []string{"branch", "commit"}},
			toolset.Param{Name: "create", Kind: toolset.Boolean, About: "Make the branch."},
			toolset.Param{Name: "detach", Kind: toolset.Boolean},
			toolset.Param{Name: "force", Kind: toolset.Boolean, About: "Lose changes that are in no commit."},
		),
		Example: `{"path": "app", "target": "topic", "create": true}`,
		Run: inRepository(func(ctx context.Context, c *toolset.Call, ref string, at git.At) (*toolset.Answer, error) {
			a := c.Args
			r := git.CheckoutRequest{At: at, Target: a.Text("target"), Create: a.Bool("create", false), Detach: a.Bool("detach", false), Force: a.Bool("force", false)}
			if err := a.Err(); err != nil {
				return nil, err
			}
			got, err := c.Git.Checkout(ctx, c.Caller, ref, r)
			return told("checked out %s", headText(got.Commit, got.Branch)), err
		}),
	}
}

func gitReset() toolset.Tool {
	return toolset.Tool{
		Name: "git_reset", Title: "Reset", Destructive: true,
		About: "Put the branch at another commit, or with files these in the index.",
		Params: paramsOf(
			toolset.Param{Name: "target", Kind: toolset.Text, About: "Default HEAD.", Aliases: []string{"commit"}},
			toolset.Param{Name: "mode", Kind: toolset.Text, Enum: git.ResetModes(), About: "Default mixed."},
			paramFiles(false),
		),
		Example: `{"path": "app", "mode": "hard", "target": "HEAD~1"}`,
		Run: inRepository(func(ctx context.Context, c *toolset.Call, ref string, at git.At) (*toolset.Answer, error) {
			r := git.ResetRequest{At: at, Target: c.Args.Text("target"), Mode: c.Args.Text("mode"), Files: c.Args.List("files")}
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			got, err := c.Git.Reset(ctx, c.Caller, ref, r)
			return told("reset · %s", headText(got.Commit, got.Branch)), err
		}),
	}
}

func gitRestore() toolset.Tool {
	return toolset.Tool{
		Name: "git_restore", Title: "Restore files", Destructive: true, Idempotent: true,
		About: "Make files as they were: in the working tree, or with staged in the index.",
		Params: paramsOf(
			paramFiles(true),
			toolset.Param{Name: "staged", Kind: toolset.Boolean},
			toolset.Param{Name: "source", Kind: toolset.Text, About: "A commit. Default the index."},
		),
		Example: `{"path": "app", "files": "main.go"}`,
		Run: inRepository(func(ctx context.Context, c *toolset.Call, ref string, at git.At) (*toolset.Answer, error) {
			r := git.RestoreRequest{At: at, Files: c.Args.List("files"), Staged: c.Args.Bool("staged", false), Source: c.Args.Text("source")}
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			return told("restored"), c.Git.Restore(ctx, c.Caller, ref, r)
		}),
	}
}

func gitRemote() toolset.Tool {
	return toolset.Tool{
		Name: "git_remote", Title: "Remotes", Destructive: true,
		About: "List remotes; with remote and url add one, with delete remove it.",
		Params: paramsOf(
			toolset.Param{Name: "remote", Kind: toolset.Text, Field: "name"},
			toolset.Param{Name: "url", Kind: toolset.Text, About: "Without credentials."},
			toolset.Param{Name: "overwrite", Kind: toolset.Boolean},
			toolset.Param{Name: "delete", Kind: toolset.Boolean},
		),
		Example: `{"path": "app", "remote": "upstream", "url": "https://example.org/app.git"}`,
		Run: inRepository(func(ctx context.Context, c *toolset.Call, ref string, at git.At) (*toolset.Answer, error) {
			a := c.Args
			name, url, overwrite, del := a.Text("remote"), a.Text("url"), a.Bool("overwrite", false), a.Bool("delete", false)
			if err := a.Err(); err != nil {
				return nil, err
			}
			switch {
			case del:
				return told("removed the remote"), c.Git.RemoveRemote(ctx, c.Caller, ref, git.RemoveRemoteRequest{At: at, Name: name})
			case name != "":
				got, err := c.Git.AddRemote(ctx, c.Caller, ref, git.AddRemoteRequest{At: at, Name: name, URL: url, Overwrite: overwrite})
				return told("the remote %s is %s", got.Name, toolset.PrintablePath(got.URL)), err
			}
			l, err := c.Git.Remotes(ctx, c.Caller, ref, at)
			if err != nil {
				return nil, err
			}
			ans := told("%d remotes", len(l))
			for _, x := range l[:min(len(l), mostStatus)] {
				ans.Lines = append(ans.Lines, toolset.PrintablePath(x.Name)+" "+toolset.PrintablePath(x.URL))
			}
			return ans, nil
		}),
	}
}

func gitConfig() toolset.Tool {
	return toolset.Tool{
		Name: "git_config", Title: "Git's configuration", Destructive: true, Idempotent: true,
		About: "Read a value of git's configuration; with value set it, with delete remove it. No place for credentials.",
		Params: paramsOf(
			toolset.Param{Name: "key", Kind: toolset.Text, Required: true},
			toolset.Param{Name: "value", Kind: toolset.Text},
			toolset.Param{Name: "scope", Kind: toolset.Text, Enum: git.ConfigScopes(), About: "global is the user's."},
			toolset.Param{Name: "delete", Kind: toolset.Boolean},
		),
		Example: `{"key": "user.name", "value": "Ann", "scope": "global"}`,
		Run: inRepository(func(ctx context.Context, c *toolset.Call, ref string, at git.At) (*toolset.Answer, error) {
			a := c.Args
			r := git.ConfigRequest{At: at, Key: a.Text("key"), Scope: a.Text("scope")}
			value, del := a.Text("value"), a.Bool("delete", false)
			if err := a.Err(); err != nil {
				return nil, err
			}
			switch {
			case del:
				return told("removed"), c.Git.UnsetConfig(ctx, c.Caller, ref, r)
			case a.Has("value"):
				return told("set"), c.Git.SetConfig(ctx, c.Caller, ref, git.SetConfigRequest{ConfigRequest: r, Value: value})
			}
			got, err := c.Git.Config(ctx, c.Caller, ref, r)
			if err != nil {
				return nil, err
			}
			return &toolset.Answer{Verdict: "the value", Sections: []toolset.Section{{Title: "value", Body: got + "\n"}}}, nil
		}),
	}
}
