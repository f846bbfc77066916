// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/service"
	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func pauseSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "pause_sandbox", Title: "Pause a sandbox", Idempotent: true,
		About:   "Freeze a sandbox with all that runs in it: processes keep their memory and go on where they were after resume_sandbox. Timeouts of commands stand still meanwhile.",
		Params:  []toolset.Param{paramSandbox()},
		Example: `{"sandbox": "my-project"}`,
		Run: becoming(service.Sandboxes.Pause, func(s *sandbox.Sandbox) (string, []string) {
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
		Run: becoming(service.Sandboxes.Resume, func(s *sandbox.Sandbox) (string, []string) {
			return fmt.Sprintf("sandbox %s is %s", s.Ref(), s.State), nil
		}),
	}
}

func restartSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "restart_sandbox", Title: "Restart a sandbox", Destructive: true,
		About:   "Stop a sandbox and start it: all its processes end, its files stay. For an empty disk: reset_sandbox.",
		Params:  []toolset.Param{paramThisSandbox()},
		Example: `{"sandbox": "my-project"}`,
		Run: becoming(service.Sandboxes.Restart, func(s *sandbox.Sandbox) (string, []string) {
			return fmt.Sprintf("restarted sandbox %s: its processes have ended, its files are as they were, and it is %s", s.Ref(), s.State), nil
		}),
	}
}

func resetSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "reset_sandbox", Title: "Give a sandbox an empty disk", Destructive: true,
		About:   "Give a sandbox an empty disk, as if it were new: its processes end and all its files are lost. Name, id and snapshots stay. To keep the files: restart_sandbox.",
		Params:  []toolset.Param{paramThisSandbox()},
		Example: `{"sandbox": "my-project"}`,
		Run: becoming(service.Sandboxes.Reset, func(s *sandbox.Sandbox) (string, []string) {
			return fmt.Sprintf("reset sandbox %s: its disk is empty, and it is %s", s.Ref(), s.State), nil
		}),
	}
}

// paramThisSandbox is the sandbox of a tool that takes something away: it is said, and never the default one.
func paramThisSandbox() toolset.Param {
	return toolset.Param{Name: "sandbox", Kind: toolset.Text, Required: true, Field: "key", About: "Name or id of the sandbox.", Aliases: sandboxAliases()}
}

func startSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "start_sandbox", Title: "Start a sandbox", Idempotent: true,
		About:   "Start a stopped sandbox again, with its files. One that runs is no error.",
		Params:  []toolset.Param{paramSandbox()},
		Example: `{"sandbox": "my-project"}`,
		Run: becoming(service.Sandboxes.Start, func(s *sandbox.Sandbox) (string, []string) {
			return fmt.Sprintf("sandbox %s is %s", s.Ref(), s.State), nil
		}),
	}
}

func stopSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "stop_sandbox", Title: "Stop a sandbox", Destructive: true, Idempotent: true,
		About: "Stop a sandbox: its processes end, its files stay. It takes no memory then, and stays down until start_sandbox.",
		Params: []toolset.Param{
			paramThisSandbox(),
			{Name: "grace_seconds", Kind: toolset.Number, Min: 0, Max: engine.MaxGrace.Seconds(), About: "How long processes may take to end after TERM; 0: killed at once. Default: the server's, 5 as shipped.", Aliases: []string{"grace", "timeout"}},
		},
		Example: `{"sandbox": "my-project"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			do := service.Sandboxes.Stop
			if c.Args.Has("grace_seconds") {
				grace := toolset.Seconds(c.Args.Number("grace_seconds", 0))
				do = func(s service.Sandboxes, ctx context.Context, who access.Caller, ref string) (*sandbox.Sandbox, error) {
					return s.StopWithin(ctx, who, ref, grace)
				}
			}
			return becoming(do, stopped)(ctx, c)
		},
	}
}

func stopped(s *sandbox.Sandbox) (string, []string) {
	if s.State == sandbox.Deleted {
		return "stopped sandbox " + s.Ref() + ", which deleted it: it was made with auto_delete", nil
	}
	return fmt.Sprintf("sandbox %s is %s: its processes have ended, its files stay", s.Ref(), s.State), []string{"start_sandbox starts it again"}
}

func archiveSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "archive_sandbox", Title: "Archive a sandbox", Idempotent: true,
		About:   "Put away a stopped sandbox that is not needed for a while: its disk is packed and kept elsewhere. start_sandbox brings it back with all its files, which takes longer than from stopped.",
		Params:  []toolset.Param{paramThisSandbox()},
		Example: `{"sandbox": "my-project"}`,
		Run: becoming(service.Sandboxes.Archive, func(s *sandbox.Sandbox) (string, []string) {
			return fmt.Sprintf("sandbox %s is %s: its disk is packed into %s", s.Ref(), s.State, toolset.BytesText(s.Archive.PackedBytes)), []string{"start_sandbox brings it back"}
		}),
	}
}

func updateSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "update_sandbox", Title: "Change a sandbox", Destructive: true, Idempotent: true,
		About: "Change a sandbox's name, limits, network, environment, volumes or clocks. What is left out stays. All but volumes can change while it runs; the network changes at once, for open connections too.",
		Params: []toolset.Param{
			{Name: "sandbox", Kind: toolset.Text, Required: true, About: "Name or id of the sandbox.", Aliases: sandboxAliases()},
			{Name: "new_name", Kind: toolset.Text, Field: "key", About: "Another name for it.", Aliases: []string{"key", "rename_to"}},
			{Name: "size", Kind: toolset.Text, About: "small, medium or large: cpus and memory_mb, where they are not given."},
			{Name: "memory_mb", Kind: toolset.Integer, Min: sandbox.MinMemoryMB, Max: sandbox.MaxMemoryMB, About: "Memory in MiB.", Aliases: []string{"memory"}},
			{Name: "cpus", Kind: toolset.Number, Min: sandbox.MinCPU, Max: sandbox.MaxCPU, Field: "cpu_cores", About: "CPU cores.", Aliases: []string{"cpu", "cpu_cores"}},
			{Name: "disk_mb", Kind: toolset.Integer, Min: sandbox.MinDiskMB, Max: sandbox.MaxDiskMB, About: "Disk in MiB.", Aliases: []string{"disk"}},
			{Name: "pids", Kind: toolset.Integer, Min: sandbox.MinPids, Max: sandbox.MaxPids, About: "Processes and threads."},
			{Name: "network", Kind: toolset.Text, About: "off, restricted (only what the allow_ arguments say) or open."},
			{Name: "allow_domains", Kind: toolset.Text, About: "Names, or presets such as python, that it may reach, with commas; *.example.org is all below it. Replaces the list.", Aliases: []string{"domains"}},
			{Name: "allow_addresses", Kind: toolset.Text, About: "Addresses or ranges that it may reach without a name, with commas.", Aliases: []string{"allow_cidrs"}},
			{Name: "deny", Kind: toolset.Text, About: "With open: names and addresses not to be reached, with commas.", Aliases: []string{"deny_domains", "deny_cidrs"}},
			{Name: "allow_ports", Kind: toolset.Text, About: "Ports of both, like 443, 8000-8010. Default: all."},
			paramHeaders("no secrets. Replaces all."),
			{Name: "env", Kind: toolset.Texts, About: "Replaces all variables.", Aliases: []string{"env_vars", "environment"}},
			{Name: "env_set", Kind: toolset.Texts, About: "Adds or changes variables, and leaves the others."},
			{Name: "env_unset", Kind: toolset.Text, About: "Variables to take away, with commas."},
			{Name: "labels", Kind: toolset.Texts, Field: "metadata", About: "Replaces all labels.", Aliases: []string{"metadata"}},
			paramVolumes("Replaces what it mounts, as in create_sandbox; empty: nothing. It must be stopped."),
			{Name: "ttl_minutes", Kind: toolset.Number, Min: 0, Max: toolset.MaxMinutes, Field: "ttl_seconds", About: "Delete it so long from now; 0: never.", Aliases: []string{"ttl"}},
			{Name: "extend_minutes", Kind: toolset.Number, Min: 0, Max: toolset.MaxMinutes, Field: "extend_to", About: "Delete it no earlier than that."},
			{Name: "on_expiry", Kind: toolset.Text, Enum: []string{string(sandbox.ExpiryDelete), string(sandbox.ExpiryStop), string(sandbox.ExpiryPause)}, About: "What is done then; as made: delete."},
			{Name: "unused_ttl_minutes", Kind: toolset.Number, Min: 0, Max: toolset.MaxMinutes, About: "Delete it when unused for so long; 0: never."},
			{Name: "idle_minutes", Kind: toolset.Number, Min: 0, Max: toolset.MaxMinutes, Field: "idle_timeout_seconds", About: "Stop it when unused for so long; 0: never."},
			{Name: "idle_action", Kind: toolset.Text, Enum: []string{string(sandbox.IdleStop), string(sandbox.IdlePause)}, About: "What is done then."},
			{Name: "retention_minutes", Kind: toolset.Number, Min: 0, Max: toolset.MaxMinutes, Field: "retention_seconds", About: "Delete it when stopped for so long; 0: never."},
			{Name: "archive_after_minutes", Kind: toolset.Number, Min: 0, Max: toolset.MaxMinutes, Field: "archive_after_seconds", About: "Archive it when stopped for so long; 0: never."},
			{Name: "auto_delete", Kind: toolset.Boolean, About: "Delete it as soon as it is stopped."},
			{Name: "auto_start", Kind: toolset.Boolean, About: "A call starts it when a clock or the host took it down."},
			{Name: "auto_resume", Kind: toolset.Boolean, About: "A call resumes it also when it was paused by a caller."},
			{Name: "sudo", Kind: toolset.Boolean, About: "Its user may use sudo, and so is root."},
			{Name: "checkpoints", Kind: toolset.Text, Enum: []string{string(sandbox.CheckpointsOff), string(sandbox.CheckpointsCommand)}, About: "command: a snapshot after each command that changed files of the workspace."},
		},
		Example: `{"sandbox": "my-project", "memory_mb": 1024}`,
		Run:     applyPatch,
	}
}

func applyPatch(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	p := patch(c.Args)
	resize(c, &p)
	if p.Empty() && len(c.Args.Bad) == 0 {
		c.Args.Add("sandbox", "is all that is given; say what shall change, for example memory_mb")
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	s, err := c.Sandboxes.Update(ctx, c.Caller, ref, p)
	if fault.Is(err, fault.State) {
		if now, gerr := c.Sandboxes.Get(ctx, c.Caller, ref); gerr == nil && now.State == sandbox.Running {
			return nil, fault.Wrap(fault.State, err, "%s", fault.As(err).Message).
				WithRemedy(`call stop_sandbox with {"sandbox": %s}, this again, and start_sandbox`, toolset.Quote(ref))
		}
	}
	if err != nil {
		return nil, err
	}
	sh := describe(ctx, c, s)
	return &toolset.Answer{Verdict: fmt.Sprintf("changed sandbox %s, which is %s", s.Ref(), s.State), Lines: sh.lines(), Structured: sh}, nil
}

// patch reads what shall change; problems are kept in a.
func patch(a *toolset.Args) update.Patch {
	var p update.Patch
	given(a, "new_name", &p.Key, a.Text)
	given(a, "cpus", &p.CPU, func(n string) float64 { return a.Number(n, 0) })
	whole := func(n string) int { return int(a.Number(n, 0)) }
	given(a, "memory_mb", &p.MemoryMB, whole)
	given(a, "disk_mb", &p.DiskMB, whole)
	given(a, "pids", &p.Pids, whole)
	clock := func(n string) time.Duration { return toolset.Minutes(a.Number(n, 0)) }
	given(a, "ttl_minutes", &p.TTL, clock)
	given(a, "unused_ttl_minutes", &p.SlidingTTL, clock)
	given(a, "idle_minutes", &p.IdleTimeout, clock)
	given(a, "retention_minutes", &p.Retention, clock)
	given(a, "archive_after_minutes", &p.ArchiveAfter, clock)
	yes := func(n string) bool { return a.Bool(n, false) }
	given(a, "auto_delete", &p.AutoDelete, yes)
	given(a, "auto_start", &p.AutoStart, yes)
	given(a, "auto_resume", &p.AutoResume, yes)
	given(a, "sudo", &p.Sudo, yes)
	given(a, "idle_action", &p.OnIdle, func(n string) sandbox.IdleAction { return sandbox.IdleAction(a.Text(n)) })
	given(a, "on_expiry", &p.OnExpiry, func(n string) sandbox.ExpiryAction { return sandbox.ExpiryAction(a.Text(n)) })
	given(a, "checkpoints", &p.Checkpoints, func(n string) sandbox.Checkpoints { return sandbox.Checkpoints(a.Text(n)) })
	given(a, "env", &p.Env, a.Env)
	if a.Has("env_set") {
		p.EnvSet = a.Env("env_set")
	}
	p.EnvUnset = a.List("env_unset")
	given(a, "extend_minutes", &p.ExtendTo, func(n string) time.Time { return time.Now().Add(clock(n)) })
	given(a, "labels", &p.Metadata, a.Env)
	given(a, "volumes", &p.Mounts, func(string) []volume.Mount { return mounts(a) })
	p.Network = network(a)
	if p.Headers = headers(a); p.Headers == nil {
		p.KeepHeaders = p.Network != nil
	}
	return p
}

// resize reads the name of a size into what of it is not given.
func resize(c *toolset.Call, p *update.Patch) {
	var l sandbox.Limits
	c.Size(&l)
	if p.CPU == nil && l.CPU != 0 {
		p.CPU = &l.CPU
	}
	if p.MemoryMB == nil && l.MemoryMB != 0 {
		p.MemoryMB = &l.MemoryMB
	}
}

// given sets what an argument says, if it is there.
func given[T any](a *toolset.Args, name string, to **T, read func(string) T) {
	if a.Has(name) {
		*to = new(read(name))
	}
}
