// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"fmt"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/sandbox"
)

func pauseSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "pause_sandbox", Title: "Pause a sandbox", Idempotent: true,
		About:   "Freeze a sandbox with all that runs in it: processes keep their memory and go on where they were after resume_sandbox. Timeouts of commands stand still meanwhile.",
		Params:  []toolset.Param{paramSandbox()},
		Example: `{"sandbox": "my-project"}`,
		Run: becoming(toolset.Engine.Pause, func(s *sandbox.Sandbox) (string, []string) {
			next := "resume_sandbox lets it go on; until then commands in it are refused"
			if s.AutoResume {
				next = "resume_sandbox lets it go on, and so does the next command in it"
			}
			return "paused sandbox " + s.Ref() + ": its processes stand still", []string{next}
		}),
	}
}

func resumeSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "resume_sandbox", Title: "Resume a sandbox", Idempotent: true,
		About:   "Let the processes of a paused sandbox go on where they were.",
		Params:  []toolset.Param{paramSandbox()},
		Example: `{"sandbox": "my-project"}`,
		Run: becoming(toolset.Engine.Resume, func(s *sandbox.Sandbox) (string, []string) {
			return fmt.Sprintf("sandbox %s is %s", s.Ref(), s.State), nil
		}),
	}
}

func restartSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "restart_sandbox", Title: "Restart a sandbox with an empty disk", Destructive: true,
		About: "Give a sandbox an empty disk, as if it were new: its processes end and all its files are lost. Name, id and snapshots stay. To keep the files, do not use this.",
		Params: []toolset.Param{
			{Name: "sandbox", Kind: toolset.Text, Required: true, Field: "key", About: "Name or id of the sandbox.", Aliases: sandboxAliases()},
		},
		Example: `{"sandbox": "my-project"}`,
		Run: becoming(toolset.Engine.Restart, func(s *sandbox.Sandbox) (string, []string) {
			return fmt.Sprintf("restarted sandbox %s: its disk is empty, and it is %s", s.Ref(), s.State), nil
		}),
	}
}

func startSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "start_sandbox", Title: "Start a sandbox", Idempotent: true,
		About:   "Start a stopped sandbox again, with its files. One that runs is no error.",
		Params:  []toolset.Param{paramSandbox()},
		Example: `{"sandbox": "my-project"}`,
		Run: becoming(toolset.Engine.Start, func(s *sandbox.Sandbox) (string, []string) {
			return fmt.Sprintf("sandbox %s is %s", s.Ref(), s.State), nil
		}),
	}
}

func stopSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "stop_sandbox", Title: "Stop a sandbox", Destructive: true, Idempotent: true,
		About: "Stop a sandbox: its processes end, its files stay. It takes no memory then, and stays down until start_sandbox.",
		Params: []toolset.Param{
			{Name: "sandbox", Kind: toolset.Text, Required: true, Field: "key", About: "Name or id of the sandbox.", Aliases: sandboxAliases()},
		},
		Example: `{"sandbox": "my-project"}`,
		Run: becoming(toolset.Engine.Stop, func(s *sandbox.Sandbox) (string, []string) {
			if s.State == sandbox.Deleted {
				return "stopped sandbox " + s.Ref() + ", which deleted it: it was made with auto_delete", nil
			}
			return fmt.Sprintf("sandbox %s is %s: its processes have ended, its files stay", s.Ref(), s.State), []string{"start_sandbox starts it again"}
		}),
	}
}
