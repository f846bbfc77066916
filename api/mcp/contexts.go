// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"

	"sandpit.dev/engine"
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

func contextShapeOf(x *engine.Context) contextShape {
	out := contextShape{
		Context: x.ID, Shell: x.Name, Language: x.Language, Status: string(x.Status), Ended: x.Ended, Default: x.Default,
		Queued: x.Queued, Executions: x.Cells, User: x.User, Cwd: x.Cwd, LastUsedAt: timeText(x.UsedAt),
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

func listContexts() tool {
	return tool{
		name: "list_contexts", title: "List contexts of code and shells", readOnly: true, idempotent: true,
		about:   "List a sandbox's contexts of run_code and its shells, and what they do.",
		params:  []param{paramSandbox()},
		example: `{"sandbox": "my-project"}`,
		run: at(func(ctx context.Context, c *call, ref string) (*answer, error) {
			all, err := c.engine.Contexts(ctx, c.Caller, ref)
			if err != nil {
				return nil, err
			}
			shells, err := c.engine.Shells(ctx, c.Caller, ref)
			if err != nil {
				return nil, err
			}
			out := contextList{Contexts: make([]contextShape, 0, len(all)+len(shells))}
			ans := &answer{verdict: fmt.Sprintf("%s of code and %s in sandbox %s", counted(len(all), "context", "contexts"), counted(len(shells), "shell", "shells"), ref)}
			for _, x := range append(all, shells...) {
				sh := contextShapeOf(&x)
				out.Contexts = append(out.Contexts, sh)
				ans.lines = append(ans.lines, sh.line())
			}
			ans.structured = out
			return ans, nil
		}),
	}
}

func createContext() tool {
	return tool{
		name: "create_context", title: "Make a context of code, or a shell",
		about: "Make a context of run_code with variables of its own, beside the language's default one; or with shell a shell for run_in_shell that begins with this directory and environment.",
		params: []param{
			{name: "language", kind: text, enum: []string{"python", "javascript", "typescript", "bash"}, about: "Default python.", aliases: []string{"lang"}},
			{name: "shell", kind: text, about: "Name of a shell to make, instead of a context.", aliases: []string{"shell_name"}},
			paramWhich(),
			{name: "cwd", kind: text, about: "Where it starts, default /workspace, as root /root.", aliases: []string{"workdir"}},
			{name: "env", kind: texts, about: "Environment variables.", aliases: []string{"env_vars", "environment"}},
			{name: "as_user", kind: text, about: "sandbox (default) or root.", aliases: []string{"user"}},
		},
		example: `{"language": "python"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			a := c.args
			language, name, cwd, env, user := a.text("language"), a.text("shell"), a.text("cwd"), a.env("env"), a.text("as_user")
			if name != "" && language != "" && language != "bash" {
				a.add("language", "is %s, and a shell is a bash", language)
			}
			if err := a.err(); err != nil {
				return nil, err
			}
			ref, err := c.place(ctx, true)
			if err != nil {
				return nil, err
			}
			var made engine.Context
			if name != "" {
				made, err = c.engine.CreateShell(ctx, c.Caller, ref, engine.ShellRequest{Name: name, Cwd: cwd, Env: env, User: user})
			} else {
				made, err = c.engine.CreateContext(ctx, c.Caller, ref, engine.ContextRequest{Language: orElse(language, "python"), Cwd: cwd, Env: env, User: user})
			}
			if err != nil {
				return nil, err
			}
			sh := contextShapeOf(&made)
			next := fmt.Sprintf(`run_code with {"sandbox": %s, "context": %s, "code": "…"} uses it`, quote(ref), quote(sh.Context))
			if name != "" {
				next = fmt.Sprintf(`run_in_shell with {"sandbox": %s, "shell": %s, "command": "…"} uses it`, quote(ref), quote(sh.Shell))
			}
			return &answer{verdict: "made " + sh.line() + " · sandbox " + ref, lines: []string{next}, structured: sh}, nil
		},
	}
}

// What end_context does.
const (
	endAll       = "end"
	endRestart   = "restart"
	endInterrupt = "interrupt"
)

func endContext() tool {
	return tool{
		name: "end_context", title: "End or interrupt a context of code, or a shell", destructive: true,
		about: "End a context of code or a shell with all that it started; or interrupt only what runs in it, as Ctrl-C does; or give a context a fresh start.",
		params: []param{
			{name: "context", kind: text, about: "Id of a context of code; or:", aliases: []string{"context_id"}},
			{name: "shell", kind: text, about: "Name of a shell.", aliases: []string{"shell_name"}},
			paramWhich(),
			{name: "how", kind: text, enum: []string{endAll, endInterrupt, endRestart}, about: "end (default), interrupt, or restart (of a context).", aliases: []string{"action"}},
		},
		example: `{"shell": "main", "how": "interrupt"}`,
		run:     endOne,
	}
}

func endOne(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	id, shell, how := a.text("context"), a.text("shell"), orElse(a.text("how"), endAll)
	switch {
	case (id == "") == (shell == ""):
		a.add("context", "or shell: give one of the two; list_contexts shows what there is")
	case shell != "" && how == endRestart:
		a.add("how", "restart is for contexts of code; end the shell, and the next command begins another")
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	ref, err := c.place(ctx, false)
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
		err = c.engine.InterruptShell(ctx, c.Caller, ref, shell)
	case shell != "":
		err = c.engine.DeleteShell(ctx, c.Caller, ref, shell)
	case how == endInterrupt:
		err = c.engine.InterruptContext(ctx, c.Caller, ref, id)
	case how == endRestart:
		_, err = c.engine.RestartContext(ctx, c.Caller, ref, id)
	default:
		err = c.engine.DeleteContext(ctx, c.Caller, ref, id)
	}
	if err != nil {
		return nil, err
	}
	return &answer{verdict: done + " · sandbox " + ref}, nil
}
