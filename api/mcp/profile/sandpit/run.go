// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"

	"sandpit.dev/api/mcp/batch"
	"sandpit.dev/api/mcp/toolset"
)

func runSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "run_sandbox", Title: "Run commands in order", Destructive: true, OpenWorld: true,
		About: "Run a batch of commands, one after the other, in the sandbox of an identifier, which the first run creates. " +
			"The batch ends at the first failure unless options.continue_on_error or the command's allow_failure says otherwise. " +
			"It waits for the end, at most options.await_timeout_ms; the run goes on after that, and run_id waits again. " +
			"Files under /artifacts are kept for download after each run. For single commands run_command is simpler.",
		Params: []toolset.Param{
			{Name: "identifier", Kind: toolset.Text, Required: true, Field: "sandbox", About: "1 to 36 letters, digits, - and _. The same identifier gives the same sandbox.", Aliases: []string{"sandbox", "session_key"}},
			{Name: "commands", Kind: toolset.Nested, Schema: batch.CommandsSchema, About: "a list like [{\"shell\": \"ls\"}]"},
			{Name: "options", Kind: toolset.Nested, Schema: batch.OptionsSchema(true)},
			{Name: "run_id", Kind: toolset.Text, About: "Instead of commands: a run that goes on, to wait for."},
		},
		Example: `{"identifier": "chat-1", "commands": [{"shell": "python3 --version"}]}`,
		Run:     func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) { return batch.Run(ctx, c, true) },
		Past:    batch.Past,
	}
}
