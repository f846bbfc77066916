// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func deleteSandbox() tool {
	return tool{
		name: "delete_sandbox", title: "Delete a sandbox", destructive: true, idempotent: true,
		about: "Delete a sandbox for ever: its processes end, its files are lost.",
		params: []param{
			{name: "sandbox", kind: text, required: true, field: "key", about: "Name or id of the sandbox.", aliases: sandboxAliases()},
		},
		example: `{"sandbox": "my-project"}`,
		run:     remove,
	}
}

func remove(ctx context.Context, c *call) (*answer, error) {
	c.ref = c.args.text("sandbox")
	if c.ref == "" {
		c.args.add("sandbox", "is empty")
	}
	if err := c.args.err(); err != nil {
		return nil, err
	}
	err := c.engine.Delete(ctx, c.Caller, c.ref)
	if fault.Is(err, fault.NotFound) {
		// What should be gone is gone; but a name that was mistyped must show.
		return &answer{
			verdict: "nothing to delete: there is no sandbox " + quote(sandbox.Clip(c.ref, maxShown)),
			lines:   []string{"there are: " + c.living(ctx)},
		}, nil
	}
	if err != nil {
		return nil, err
	}
	return &answer{verdict: "deleted sandbox " + c.ref + " with all its files"}, nil
}
