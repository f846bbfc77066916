// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func deleteSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "delete_sandbox", Title: "Delete a sandbox", Destructive: true, Idempotent: true,
		About: "Delete a sandbox for ever: its processes end, its files are lost.",
		Params: []toolset.Param{
			{Name: "sandbox", Kind: toolset.Text, Required: true, Field: "key", About: "Name or id of the sandbox.", Aliases: sandboxAliases()},
		},
		Example: `{"sandbox": "my-project"}`,
		Run:     remove,
	}
}

func remove(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	c.Ref = c.Args.Text("sandbox")
	if c.Ref == "" {
		c.Args.Add("sandbox", "is empty")
	}
	if err := c.Args.Err(); err != nil {
		return nil, err
	}
	err := c.Engine.Delete(ctx, c.Caller, c.Ref)
	if fault.Is(err, fault.NotFound) {
		// What should be gone is gone; but a name that was mistyped must show.
		return &toolset.Answer{
			Verdict: "nothing to delete: there is no sandbox " + toolset.Quote(sandbox.Clip(c.Ref, toolset.MaxShown)),
			Lines:   []string{"there are: " + c.Living(ctx)},
		}, nil
	}
	if err != nil {
		return nil, err
	}
	return &toolset.Answer{Verdict: "deleted sandbox " + c.Ref + " with all its files"}, nil
}
