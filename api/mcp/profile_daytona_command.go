// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"strings"

	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

func daytonaExecute() tool {
	return tool{
		name: "execute_command", title: "Execute a command", destructive: true, openWorld: true,
		about: "Execute a shell command in a sandbox, from /workspace. Answers with stdout, stderr and exit_code when it has ended, after 10 minutes at most.",
		params: []param{
			daytonaWords().which(),
			{name: "command", kind: text, required: true, about: "Shell text.", aliases: []string{"cmd", "script"}},
		},
		example: `{"id": "an-id", "command": "python3 --version"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			w := daytonaWords()
			w.in(c)
			r := engine.ExecRequest{Shell: c.args.needs("command"), Timeout: min(defaultTimeout, c.engine.MostCommandTime())}
			if err := c.args.err(); err != nil {
				return nil, err
			}
			done, notes, err := w.whole(ctx, c, r)
			if err != nil {
				return nil, err
			}
			out := daytonaResult{
				Stdout: strings.TrimSpace(done.stdout.text), Stderr: strings.TrimSpace(done.stderr.text), ExitCode: done.ExitCode,
			}
			if done.Cause != sandbox.CauseNone {
				out.ErrorType = "CommandExecutionError"
				notes = append(notes, causeText(done.Cause))
			}
			ans, err := inJSON(out, "  ")
			if err == nil {
				ans.notes = notes
			}
			return ans, err
		},
	}
}

type daytonaResult struct {
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	ExitCode  int    `json:"exit_code"`
	ErrorType string `json:"error_type,omitempty"` // where it did not end by itself
}
