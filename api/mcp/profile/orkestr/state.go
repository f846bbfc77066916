// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/orkestrterms"
	"sandpit.dev/sandbox"
)

func pause() toolset.Tool {
	return toolset.Tool{
		Name: "pause_sandbox", Title: "Pause a sandbox", Idempotent: true,
		About:   "Pause a sandbox: its processes stand still, with their memory, and its meter stops. resume_sandbox lets it go on.",
		Params:  []toolset.Param{words().Which()},
		Example: `{"sandbox_id": "an-id"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			return turn(ctx, c, c.Sandboxes.Pause)
		},
	}
}

func resume() toolset.Tool {
	return toolset.Tool{
		Name: "resume_sandbox", Title: "Resume a sandbox", Idempotent: true,
		About:   "Resume a paused sandbox: everything in it goes on where it was.",
		Params:  []toolset.Param{words().Which()},
		Example: `{"sandbox_id": "an-id"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			return turn(ctx, c, func(ctx context.Context, caller access.Caller, ref string) (*sandbox.Sandbox, error) {
				return orkestrterms.Resume(ctx, c.Sandboxes, caller, ref)
			})
		},
	}
}

// turn does one verb, and shows what the sandbox is then.
func turn(ctx context.Context, c *toolset.Call, verb func(context.Context, access.Caller, string) (*sandbox.Sandbox, error)) (*toolset.Answer, error) {
	ref := words().In(c)
	if err := c.Args.Err(); err != nil {
		return nil, err
	}
	s, err := verb(ctx, c.Caller, ref)
	if err != nil {
		return nil, err
	}
	return answer(c, s)
}

func terminate() toolset.Tool {
	return toolset.Tool{
		Name: "terminate_sandbox", Title: "Terminate a sandbox", Destructive: true, Idempotent: true,
		About:   "Terminate a sandbox and free its resources. It cannot be undone: its files are lost.",
		Params:  []toolset.Param{words().Which()},
		Example: `{"sandbox_id": "an-id"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			words().In(c)
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			id, err := c.Delete(ctx)
			if err != nil {
				return nil, err
			}
			return handle(terminated{id, "terminated"})
		},
	}
}

// terminated confirms the end of a sandbox.
type terminated struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}
