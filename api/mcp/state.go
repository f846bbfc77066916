// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"fmt"

	"sandpit.dev/sandbox"
)

func pauseSandbox() tool {
	return tool{
		name: "pause_sandbox", title: "Pause a sandbox", idempotent: true,
		about:   "Freeze a sandbox with all that runs in it: processes keep their memory and go on where they were after resume_sandbox. Timeouts of commands stand still meanwhile.",
		params:  []param{paramSandbox()},
		example: `{"sandbox": "my-project"}`,
		run: becoming(Engine.Pause, func(s *sandbox.Sandbox) (string, []string) {
			next := "resume_sandbox lets it go on; until then commands in it are refused"
			if s.AutoResume {
				next = "resume_sandbox lets it go on, and so does the next command in it"
			}
			return "paused sandbox " + s.Ref() + ": its processes stand still", []string{next}
		}),
	}
}

func resumeSandbox() tool {
	return tool{
		name: "resume_sandbox", title: "Resume a sandbox", idempotent: true,
		about:   "Let the processes of a paused sandbox go on where they were.",
		params:  []param{paramSandbox()},
		example: `{"sandbox": "my-project"}`,
		run: becoming(Engine.Resume, func(s *sandbox.Sandbox) (string, []string) {
			return fmt.Sprintf("sandbox %s is %s", s.Ref(), s.State), nil
		}),
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
		run: becoming(Engine.Restart, func(s *sandbox.Sandbox) (string, []string) {
			return fmt.Sprintf("restarted sandbox %s: its disk is empty, and it is %s", s.Ref(), s.State), nil
		}),
	}
}

func startSandbox() tool {
	return tool{
		name: "start_sandbox", title: "Start a sandbox", idempotent: true,
		about:   "Start a stopped sandbox again, with its files. One that runs is no error.",
		params:  []param{paramSandbox()},
		example: `{"sandbox": "my-project"}`,
		run: becoming(Engine.Start, func(s *sandbox.Sandbox) (string, []string) {
			return fmt.Sprintf("sandbox %s is %s", s.Ref(), s.State), nil
		}),
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
		run: becoming(Engine.Stop, func(s *sandbox.Sandbox) (string, []string) {
			if s.State == sandbox.Deleted {
				return "stopped sandbox " + s.Ref() + ", which deleted it: it was made with auto_delete", nil
			}
			return fmt.Sprintf("sandbox %s is %s: its processes have ended, its files stay", s.Ref(), s.State), []string{"start_sandbox starts it again"}
		}),
	}
}
