// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

func execute() toolset.Tool {
	return toolset.Tool{
		Name: "execute_command", Title: "Execute a command", Destructive: true, OpenWorld: true,
		About: "Execute a shell command in a sandbox, from /workspace. Answers with stdout, stderr and exit_code when it has ended, after 10 minutes at most.",
		Params: []toolset.Param{
			words().Which(),
			{Name: "command", Kind: toolset.Text, Required: true, About: "Shell text.", Aliases: []string{"cmd", "script"}},
		},
		Example: `{"id": "an-id", "command": "python3 --version"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			w := words()
			w.In(c)
			r := engine.ExecRequest{Shell: needs(c.Args, "command"), Timeout: min(toolset.DefaultTimeout, c.Server.MostCommandTime())}
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			done, notes, err := w.Whole(ctx, c, r)
			if err != nil {
				return nil, err
			}
			out := result{
				Stdout: strings.TrimSpace(done.Stdout.Text), Stderr: strings.TrimSpace(done.Stderr.Text), ExitCode: done.ExitCode,
			}
			if done.Cause != sandbox.CauseNone {
				out.ErrorType = "CommandExecutionError"
				notes = append(notes, toolset.CauseText(done.Cause))
			}
			ans, err := toolset.JSONAnswer(out, "  ")
			if err == nil {
				ans.Notes = notes
			}
			return ans, err
		},
	}
}

type result struct {
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	ExitCode  int    `json:"exit_code"`
	ErrorType string `json:"error_type,omitempty"` // where it did not end by itself
}
