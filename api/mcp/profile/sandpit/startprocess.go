// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
)

func startProcess() toolset.Tool {
	return toolset.Tool{
		Name: "start_process", Title: "Start a process", Destructive: true, OpenWorld: true,
		About: "run_command with background, for a process with a name or labels. name:NAME is its id then, wherever one is asked for; no two that run have the same.",
		Params: []toolset.Param{
			{Name: "command", Kind: toolset.Text, Required: true, About: "Shell text.", Aliases: []string{"cmd"}},
			paramWhich(),
			{Name: "name", Kind: toolset.Text, About: "Its own, without /."},
			{Name: "labels", Kind: toolset.Texts, About: "At most 16; list_processes filters by them."},
			{Name: "merge_output", Kind: toolset.Boolean, About: "One pipe for stdout and stderr."},
			{Name: "cwd", Kind: toolset.Text, Aliases: []string{"workdir"}},
			{Name: "env", Kind: toolset.Texts, Aliases: []string{"env_vars", "environment"}},
			paramWait(toolset.MostWait.Seconds(), "Look at it for so long. Default 1."),
			{Name: "as_user", Kind: toolset.Text, Aliases: []string{"user"}},
			paramOutput(),
		},
		Example: `{"command": "npm run dev", "name": "dev"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			a := c.Args
			r := engine.ExecRequest{
				Cwd: a.Text("cwd"), Env: a.Env("env"), User: a.Text("as_user"), Wait: toolset.Seconds(a.Number("wait_seconds", 1)),
				Mark: process.Mark{Name: a.Text("name"), Labels: a.Env("labels")}, MergeOutput: a.Bool("merge_output", false),
			}
			r.Shell, r.Argv = a.Command("command")
			limit := int(a.Number("max_output_chars", toolset.DefaultOutput))
			if err := a.Err(); err != nil {
				return nil, err
			}
			ref, err := place(ctx, c, true)
			if err != nil {
				return nil, err
			}
			return inBackground(ctx, c, ref, r, limit)
		},
	}
}
