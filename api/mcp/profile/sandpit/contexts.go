// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/code"
)

// contextShape is a context of code, or a shell, as the tools show it.
type contextShape struct {
	Context    string `json:"context,omitempty"` // of code: what run_code takes
	Shell      string `json:"shell,omitempty"`   // what run_in_shell takes
	Language   string `json:"language"`
	Status     string `json:"status"`
	Ended      string `json:"ended,omitempty"` // why what was in it is gone
	Default    bool   `json:"default,omitempty"`
	Queued     int    `json:"queued,omitempty"`
	Executions int64  `json:"executions"`
	User       string `json:"user"`
	Cwd        string `json:"cwd"`
	LastUsedAt string `json:"last_used_at,omitempty"`
}

func contextShapeOf(x *code.Context) contextShape {
	out := contextShape{
		Context: x.ID, Shell: x.Name, Language: x.Language, Status: string(x.Status), Ended: x.Ended, Default: x.Default,
		Queued: x.Queued, Executions: x.Cells, User: x.User, Cwd: x.Cwd, LastUsedAt: toolset.TimeText(x.UsedAt),
	}
	if x.Name != "" {
		out.Context = ""
	}
	return out
}

func (x *contextShape) line() string {
	line := "context " + x.Context + " · " + x.Language
	if x.Shell != "" {
		line = "shell " + x.Shell
	}
	if x.Default {
		line += " · the default of its language"
	}
	line += " · " + x.Status
	if x.Ended != "" {
		line += ": " + x.Ended
	}
	if x.Queued > 0 {
		line += fmt.Sprintf(" · %d wait", x.Queued)
	}
	return line + " · user " + x.User
}

// contextList is the structured answer of list_contexts.
type contextList struct {
	Contexts []contextShape `json:"contexts"`
}

func listContexts() toolset.Tool {
	return toolset.Tool{
		Name: "list_contexts", Title: "List contexts of code and shells", ReadOnly: true, Idempotent: true,
		About:   "List a sandbox's contexts of run_code and its shells, and what they do.",
		Params:  []toolset.Param{paramSandbox()},
		Example: `{"sandbox": "my-project"}`,
		Run: at(func(ctx context.Context, c *toolset.Call, ref string) (*toolset.Answer, error) {
			all, err := c.Code.Contexts(ctx, c.Caller, ref)
			if err != nil {
				return nil, err
			}
			shells, err := c.Shells.Shells(ctx, c.Caller, ref)
			if err != nil {
				return nil, err
			}
			out := contextList{Contexts: make([]contextShape, 0, len(all)+len(shells))}
			ans := &toolset.Answer{Verdict: fmt.Sprintf("%s of code and %s in sandbox %s", toolset.Counted(len(all), "context", "contexts"), toolset.Counted(len(shells), "shell", "shells"), ref)}
			for _, x := range append(all, shells...) {
				sh := contextShapeOf(&x)
				out.Contexts = append(out.Contexts, sh)
				ans.Lines = append(ans.Lines, sh.line())
			}
			ans.Structured = out
			return ans, nil
		}),
	}
}

func createContext() toolset.Tool {
	return toolset.Tool{
		Name: "create_context", Title: "Make a context of code, or a shell",
		About: "Make a context of run_code with variables of its own, beside the language's default one; or with shell a shell for run_in_shell that begins with this directory and environment.",
		Params: []toolset.Param{
			{Name: "language", Kind: toolset.Text, Enum: []string{"python", "javascript", "typescript", "bash"}, About: "Default python.", Aliases: []string{"lang"}},
			{Name: "shell", Kind: toolset.Text, About: "Name of a shell to make, instead of a context.", Aliases: []string{"shell_name"}},
			paramWhich(),
			{Name: "cwd", Kind: toolset.Text, About: "Where it starts, default /workspace, as root /root.", Aliases: []string{"workdir"}},
			{Name: "env", Kind: toolset.Texts, About: "Environment variables.", Aliases: []string{"env_vars", "environment"}},
			{Name: "as_user", Kind: toolset.Text, About: "sandbox (default), root, or an account.", Aliases: []string{"user"}},
		},
		Example: `{"language": "python"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			a := c.Args
			language, name, cwd, env, user := a.Text("language"), a.Text("shell"), a.Text("cwd"), a.Env("env"), a.Text("as_user")
			if name != "" && language != "" && language != "bash" {
				a.Add("language", "is %s, and a shell is a bash", language)
			}
			if err := a.Err(); err != nil {
				return nil, err
			}
			ref, err := place(ctx, c, true)
			if err != nil {
				return nil, err
			}
			var made code.Context
			if name != "" {
				made, err = c.Shells.CreateShell(ctx, c.Caller, ref, code.ShellRequest{Name: name, Cwd: cwd, Env: env, User: user})
			} else {
				made, err = c.Code.CreateContext(ctx, c.Caller, ref, code.ContextRequest{Language: orElse(language, "python"), Cwd: cwd, Env: env, User: user})
			}
			if err != nil {
				return nil, err
			}
			sh := contextShapeOf(&made)
			next := fmt.Sprintf(`run_code with {"sandbox": %s, "context": %s, "code": "…"} uses it`, toolset.Quote(ref), toolset.Quote(sh.Context))
			if name != "" {
				next = fmt.Sprintf(`run_in_shell with {"sandbox": %s, "shell": %s, "command": "…"} uses it`, toolset.Quote(ref), toolset.Quote(sh.Shell))
			}
			return &toolset.Answer{Verdict: "made " + sh.line() + " · sandbox " + ref, Lines: []string{next}, Structured: sh}, nil
		},
	}
}

// What end_context does.
const (
	endAll       = "end"
	endRestart   = "restart"
	endInterrupt = "interrupt"
)

func endContext() toolset.Tool {
	return toolset.Tool{
		Name: "end_context", Title: "End or interrupt a context of code, or a shell", Destructive: true,
		About: "End a context of code or a shell with all that it started; or interrupt only what runs in it, as Ctrl-C does; or give a context a fresh start.",
		Params: []toolset.Param{
			{Name: "context", Kind: toolset.Text, About: "Id of a context of code; or:", Aliases: []string{"context_id"}},
			{Name: "shell", Kind: toolset.Text, About: "Name of a shell.", Aliases: []string{"shell_name"}},
			paramWhich(),
			{Name: "how", Kind: toolset.Text, Enum: []string{endAll, endInterrupt, endRestart}, About: "end (default), interrupt, or restart (of a context).", Aliases: []string{"action"}},
		},
		Example: `{"shell": "main", "how": "interrupt"}`,
		Run:     endOne,
	}
}

func endOne(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	id, shell, how := a.Text("context"), a.Text("shell"), orElse(a.Text("how"), endAll)
	switch {
	case (id == "") == (shell == ""):
		a.Add("context", "or shell: give one of the two; list_contexts shows what there is")
	case shell != "" && how == endRestart:
		a.Add("how", "restart is for contexts of code; end the shell, and the next command begins another")
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	what := "context " + id
	if shell != "" {
		what = "shell " + shell
	}
	done := map[string]string{
		endAll: "ended " + what + " and all that it had started", endInterrupt: "interrupted what ran in " + what + "; the rest of it stays",
		endRestart: "started " + what + " anew: its variables are gone",
	}[how]
	switch {
	case shell != "" && how == endInterrupt:
		err = c.Shells.InterruptShell(ctx, c.Caller, ref, shell)
	case shell != "":
		err = c.Shells.DeleteShell(ctx, c.Caller, ref, shell)
	case how == endInterrupt:
		err = c.Code.InterruptContext(ctx, c.Caller, ref, id)
	case how == endRestart:
		_, err = c.Code.RestartContext(ctx, c.Caller, ref, id)
	default:
		err = c.Code.DeleteContext(ctx, c.Caller, ref, id)
	}
	if err != nil {
		return nil, err
	}
	return &toolset.Answer{Verdict: done + " · sandbox " + ref}, nil
}
