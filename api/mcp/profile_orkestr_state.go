// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/sandbox"
)

func orkestrPause() tool {
	return tool{
		name: "pause_sandbox", title: "Pause a sandbox", idempotent: true,
		about:   "Pause a sandbox: its processes stand still, with their memory, and its meter stops. resume_sandbox lets it go on.",
		params:  []param{orkestrWords().which()},
		example: `{"sandbox_id": "an-id"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			return orkestrTurn(ctx, c, c.engine.Pause)
		},
	}
}

func orkestrResume() tool {
	return tool{
		name: "resume_sandbox", title: "Resume a sandbox", idempotent: true,
		about:   "Resume a paused sandbox: everything in it goes on where it was.",
		params:  []param{orkestrWords().which()},
		example: `{"sandbox_id": "an-id"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			return orkestrTurn(ctx, c, c.engine.Resume)
		},
	}
}

// orkestrTurn does one verb, and shows what the sandbox is then.
func orkestrTurn(ctx context.Context, c *call, verb func(context.Context, access.Caller, string) (*sandbox.Sandbox, error)) (*answer, error) {
	ref := orkestrWords().in(c)
	if err := c.args.err(); err != nil {
		return nil, err
	}
	s, err := verb(ctx, c.Caller, ref)
	if err != nil {
		return nil, err
	}
	return orkestrAnswer(s)
}

func orkestrTerminate() tool {
	return tool{
		name: "terminate_sandbox", title: "Terminate a sandbox", destructive: true, idempotent: true,
		about:   "Terminate a sandbox and free its resources. It cannot be undone: its files are lost.",
		params:  []param{orkestrWords().which()},
		example: `{"sandbox_id": "an-id"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			orkestrWords().in(c)
			if err := c.args.err(); err != nil {
				return nil, err
			}
			id, err := c.ended(ctx)
			if err != nil {
				return nil, err
			}
			return orkestrHandle(orkestrTerminated{id, "terminated"})
		},
	}
}

// orkestrTerminated confirms the end of a sandbox.
type orkestrTerminated struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}
