// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"

	"sandpit.dev/sandbox"
)

func pauseSandbox() tool {
	return tool{
		name: "pause_sandbox", title: "Pause a sandbox", idempotent: true,
		about:   "Freeze a sandbox with all that runs in it: processes keep their memory and go on where they were after resume_sandbox. Timeouts of commands stand still meanwhile.",
		params:  []param{paramSandbox()},
		example: `{"sandbox": "my-project"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			ref, err := c.place(ctx, false)
			if err != nil {
				return nil, err
			}
			s, err := c.engine.Pause(ctx, c.caller, ref)
			if err != nil {
				return nil, err
			}
			next := "resume_sandbox lets it go on; until then commands in it are refused"
			if s.AutoResume {
				next = "resume_sandbox lets it go on, and so does the next command in it"
			}
			sh := c.shape(ctx, s)
			return &answer{verdict: "paused sandbox " + s.Ref() + ": its processes stand still", lines: []string{next}, structured: sh}, nil
		},
	}
}

func resumeSandbox() tool {
	return tool{
		name: "resume_sandbox", title: "Resume a sandbox", idempotent: true,
		about:   "Let the processes of a paused sandbox go on where they were.",
		params:  []param{paramSandbox()},
		example: `{"sandbox": "my-project"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			ref, err := c.place(ctx, false)
			if err != nil {
				return nil, err
			}
			s, err := c.engine.Resume(ctx, c.caller, ref)
			if err != nil {
				return nil, err
			}
			return &answer{verdict: fmt.Sprintf("sandbox %s is %s", s.Ref(), s.State), structured: c.shape(ctx, s)}, nil
		},
	}
}

func restartSandbox() tool {
	return tool{
		name: "restart_sandbox", title: "Restart a sandbox with an empty disk", destructive: true,
		about: "Give a sandbox an empty disk, as if it were new: its processes end and all its files are lost. Name, id and snapshots stay. To keep the files, do not use this.",
		params: []param{
			{name: "sandbox", kind: text, required: true, field: "key", about: "Name or id of the sandbox.", aliases: sandboxAliases()},
		},
		example: `{"sandbox": "my-project"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			ref, err := c.place(ctx, false)
			if err != nil {
				return nil, err
			}
			s, err := c.engine.Restart(ctx, c.caller, ref)
			if err != nil {
				return nil, err
			}
			return &answer{verdict: fmt.Sprintf("restarted sandbox %s: its disk is empty, and it is %s", s.Ref(), s.State), structured: c.shape(ctx, s)}, nil
		},
	}
}

func startSandbox() tool {
	return tool{
		name: "start_sandbox", title: "Start a sandbox", idempotent: true,
		about:   "Start a stopped sandbox again, with its files. One that runs is no error.",
		params:  []param{paramSandbox()},
		example: `{"sandbox": "my-project"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			ref, err := c.place(ctx, false)
			if err != nil {
				return nil, err
			}
			s, err := c.engine.Start(ctx, c.caller, ref)
			if err != nil {
				return nil, err
			}
			return &answer{verdict: fmt.Sprintf("sandbox %s is %s", s.Ref(), s.State), structured: c.shape(ctx, s)}, nil
		},
	}
}

func stopSandbox() tool {
	return tool{
		name: "stop_sandbox", title: "Stop a sandbox", destructive: true, idempotent: true,
		about: "Stop a sandbox: its processes end, its files stay. It takes no memory then, and stays down until start_sandbox.",
		params: []param{
			{name: "sandbox", kind: text, required: true, field: "key", about: "Name or id of the sandbox.", aliases: sandboxAliases()},
		},
		example: `{"sandbox": "my-project"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			ref, err := c.place(ctx, false)
			if err != nil {
				return nil, err
			}
			s, err := c.engine.Stop(ctx, c.caller, ref)
			if err != nil {
				return nil, err
			}
			if s.State == sandbox.Deleted {
				return &answer{verdict: "stopped sandbox " + s.Ref() + ", which deleted it: it was made with auto_delete", structured: c.shape(ctx, s)}, nil
			}
			return &answer{
				verdict:    fmt.Sprintf("sandbox %s is %s: its processes have ended, its files stay", s.Ref(), s.State),
				lines:      []string{"start_sandbox starts it again"},
				structured: c.shape(ctx, s),
			}, nil
		},
	}
}
