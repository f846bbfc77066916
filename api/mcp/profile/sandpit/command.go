// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"strings"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func runCommand() toolset.Tool {
	return toolset.Tool{
		Name: "run_command", Title: "Run a command", Destructive: true,
		OpenWorld: true,
		About: "Run a shell command (bash) in a sandbox. Returns exit code, duration, changed files, stdout and stderr. " +
			"Files stay between calls; the working directory and shell variables do not: pass cwd and env, or use cd x && y. " +
			"A command that takes longer than wait_seconds goes on as a process, and the answer says how to read on. " +
			"Start servers with background. A command that fails is a normal result.",
		Params: []toolset.Param{
			{Name: "command", Kind: toolset.Text, Required: true, About: "Shell text.", Aliases: []string{"cmd", "script", "shell", "code"}},
			paramSandbox(),
			{Name: "cwd", Kind: toolset.Text, About: "Default /workspace, as root /root.", Aliases: []string{"workdir", "working_directory", "working_dir", "dir"}},
			{Name: "env", Kind: toolset.Texts, About: "Variables of this command.", Aliases: []string{"env_vars", "environment"}},
			{Name: "stdin", Kind: toolset.Text, About: "Its standard input.", Aliases: []string{"input"}},
			paramWait(toolset.MostWait.Seconds(), "For its end; default 45, with background 1."),
			{Name: "timeout_seconds", Kind: toolset.Number, Min: 0.1, Max: engine.MaxCommandTimeout.Seconds(), About: "Kill it and all it started after this. Default 600; with background none.", Aliases: []string{"timeout"}},
			{Name: "background", Kind: toolset.Boolean, About: "Start it and do not wait; it outlives the call, and write_process reaches its input.", Aliases: []string{"detach", "run_in_background"}},
			{Name: "as_user", Kind: toolset.Text, About: "root may install packages; any account.", Aliases: []string{"user"}},
			paramOutput(),
		},
		Example: `{"command": "python3 -c 'print(6*7)'"}`,
		Run:     runOne,
		Past:    pastCommand,
	}
}

func runOne(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	r := engine.ExecRequest{
		Cwd: a.Text("cwd"), Env: a.Env("env"), Stdin: []byte(a.Text("stdin")), User: a.Text("as_user"),
		Timeout: toolset.Seconds(a.Number("timeout_seconds", 0)),
	}
	background := a.Bool("background", false)
	r.Wait = toolset.Seconds(a.Number("wait_seconds", map[bool]float64{false: toolset.DefaultWait.Seconds(), true: 1}[background]))
	r.Shell, r.Argv = a.Command("command")
	limit := int(a.Number("max_output_chars", toolset.DefaultOutput))
	if !c.Has(toolset.GroupProcess) { // nobody could read on
		if background {
			a.Add("background", "is not possible here: the tools for processes are switched off")
		}
		r.Wait = 0
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, true)
	if err != nil {
		return nil, err
	}
	if background {
		return inBackground(ctx, c, ref, r, limit)
	}
	if r.Timeout == 0 {
		r.Timeout = min(toolset.DefaultTimeout, c.Server.MostCommandTime())
	}
	if r.Wait == 0 && c.Has(toolset.GroupProcess) {
		r.Wait = time.Millisecond // zero is for ever
	}
	if c.Task != nil && !a.Has("wait_seconds") {
		r.Wait = 0 // whoever asked gets a task meanwhile
	}
	r.TellArtifacts = true
	if c.Task != nil {
		if s, err := c.Sandboxes.Get(ctx, c.Caller, ref); err == nil {
			r.Started = func(process string) { c.Task.StandFor(taskOfCommand + string(s.ID) + "-" + process) }
		}
	}
	began := time.Now()
	done, err := c.Exec(ctx, ref, r, limit)
	if err != nil {
		return nil, err
	}
	return commandAnswer(ctx, c, ref, r.Cwd, done, began), nil
}

// commandAnswer shows a command that was waited for.
func commandAnswer(ctx context.Context, c *toolset.Call, ref, cwd string, done *toolset.Outcome, began time.Time) *toolset.Answer {
	out := &toolset.Answer{Verdict: done.Verdict()}
	if done.Running {
		out.Verdict = "still running after " + toolset.Took(time.Since(began)) + ": process " + done.ProcessID
		out.Lines = append(out.Lines, "next: "+nextRead(ref, done.ProcessID, done.Cursor)+", or stop_process")
	}
	out.Verdict += " · in " + toolset.PrintablePath(c.Absolute(ctx, ref, cwd)) + " · sandbox " + ref
	if !done.Whole() {
		out.Verdict += " · output shortened"
	}
	out.Lines = append(out.Lines, done.Reasons(ctx, c)...)
	out.Lines = append(out.Lines, c.Blocked(ctx, ref, done, began)...)
	if !done.Running {
		out.Lines = append(out.Lines, toolset.Changed(done.Changes, done.ChangesTotal, done.ChangesComplete)...)
		if !done.NoArtifacts {
			c.AddMade(ctx, out, ref, began)
		}
	}
	out.Notes = append(out.Notes, c.Shortened(ctx, ref, done)...)
	out.Sections = done.Sections("")
	return out
}

// inBackground starts a command that nobody waits for, and looks at how it begins.
func inBackground(ctx context.Context, c *toolset.Call, ref string, r engine.ExecRequest, limit int) (*toolset.Answer, error) {
	rec, err := c.Processes.StartProcess(ctx, c.Caller, ref, engine.StartRequest{
		Shell: r.Shell, Argv: r.Argv, Cwd: r.Cwd, Env: r.Env, User: r.User, Timeout: r.Timeout,
		Stdin: r.Stdin, StreamStdin: len(r.Stdin) == 0, Mark: r.Mark, MergeOutput: r.MergeOutput,
	})
	if err != nil {
		return nil, err
	}
	seen, err := watchProcess(ctx, c, ref, rec.ID, watch{wait: r.Wait})
	if err != nil {
		return nil, fault.Wrap(fault.Of(err), err, "process %s was started and goes on, but its output cannot be read: %s", rec.ID, fault.As(err).Message).
			WithRemedy("call %s", nextRead(ref, rec.ID, 0))
	}
	out := seen.answer(ctx, c, ref, limit)
	if seen.Result == nil {
		out.Verdict = "started in the background: " + out.Verdict
		out.Lines = append(out.Lines, "stop_process ends it; expose_port gives a link to what it serves")
	}
	return out, nil
}

// taskOfCommand begins the id of a task that stands for a command: then come the id of the
// sandbox, a dash, and that of the command.
const taskOfCommand = "command-"

// pastCommand finds the command that a task of an earlier server stands for.
func pastCommand(ctx context.Context, c *toolset.Call, task string) (*transport.PastTask, error) {
	rest, ok := strings.CutPrefix(task, taskOfCommand)
	of, process, _ := strings.Cut(rest, "-")
	if !ok || !sandbox.ValidID(of) || process == "" {
		return nil, nil
	}
	c.Ref = of
	events, _, err := c.Activity.Activity(ctx, c.Caller, of, engine.ActivityRequest{ProcessID: process, Types: []sandbox.EventType{sandbox.EventExec}, Limit: 1})
	if err != nil || len(events) == 0 || events[0].Actor != c.Caller.Actor || events[0].Via != toolset.Via {
		return nil, err
	}
	ev := events[0]
	rec, err := c.Processes.Process(ctx, c.Caller, of, process)
	if err != nil {
		return nil, err
	}
	t := &transport.PastTask{Created: ev.At, Updated: ev.At, Message: "process " + process + " runs"}
	t.Stop = func(ctx context.Context) error { return c.Processes.KillProcess(ctx, c.Caller, of, process) }
	if rec.Result == nil {
		return t, nil
	}
	t.Ended, t.Message = rec.Result.EndedAt, ""
	t.Updated = t.Ended
	if rec.Result.Cause == sandbox.CauseKilled {
		t.Cancelled = true
		return t, nil
	}
	seen, err := watchProcess(ctx, c, of, process, watch{})
	if err != nil {
		return nil, err
	}
	e := &toolset.Outcome{ExecResult: engine.ExecResult{
		ProcessID: process, Result: *rec.Result, Changes: ev.Changes, ChangesTotal: ev.ChangesTotal, ChangesComplete: len(ev.Changes) > 0,
	}}
	e.Show(&seen.stdout, &seen.stderr, toolset.DefaultOutput)
	s, err := c.Sandboxes.Get(ctx, c.Caller, of)
	if err != nil {
		return nil, err
	}
	out := commandAnswer(ctx, c, s.Ref(), ev.Cwd, e, ev.At)
	if seen.lost != "" {
		out.Notes = append(out.Notes, "some output is missing: "+seen.lost)
	}
	out.Notes = append(out.Notes, "the server that took this call was restarted since; this is what is on record of the command")
	t.Result = out.Result()
	return t, nil
}
