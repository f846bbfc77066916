// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func runInShell() toolset.Tool {
	return toolset.Tool{
		Name: "run_in_shell", Title: "Run a command in a shell that stays", Destructive: true, OpenWorld: true,
		About: "Run a command in a named bash of a sandbox: the directory, variables, functions and background jobs that it leaves are there for the next one. The first command makes the shell. " +
			"A command that takes longer than wait_seconds goes on; command_id waits for it again.",
		Params: []toolset.Param{
			{Name: "command", Kind: toolset.Text, About: "Shell text (bash).", Aliases: []string{"cmd", "script"}},
			{Name: "shell", Kind: toolset.Text, About: "Name of the shell, default main.", Aliases: []string{"shell_name", "session"}},
			paramWhich(),
			{Name: "command_id", Kind: toolset.Text, About: "Instead of command: one that goes on, or one of the last, to see its result.", Aliases: []string{"process", "process_id"}},
			{Name: "env", Kind: toolset.Texts, About: "Variables of this command alone.", Aliases: []string{"env_vars", "environment"}},
			{Name: "stdin", Kind: toolset.Text, About: "Its standard input."},
			{Name: "name", Kind: toolset.Text, About: "Of the command, for name:NAME in place of its id."},
			{Name: "labels", Kind: toolset.Texts, About: "Of the command; list_processes filters by them."},
			{Name: "merge_output", Kind: toolset.Boolean, About: "One pipe for stdout and stderr."},
			{Name: "as_user", Kind: toolset.Text, About: "Whose shell it is: sandbox (default), root, or an account.", Aliases: []string{"user"}},
			paramWait(toolset.MostWait.Seconds(), "For its end; default 45."),
			{Name: "timeout_seconds", Kind: toolset.Number, Min: toolset.LeastTimeout, Max: engine.MaxCommandTimeout.Seconds(), About: "Interrupt it after this, default 600.", Aliases: []string{"timeout"}},
			paramOutput(),
		},
		Example: `{"command": "cd app && export DEBUG=1"}`,
		Run:     inShell,
	}
}

// mainShell is the shell of who names none.
const mainShell = "main"

func inShell(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	name, id := orElse(a.Text("shell"), mainShell), a.Text("command_id")
	r := engine.ExecRequest{
		Env: a.Env("env"), Stdin: []byte(a.Text("stdin")), User: a.Text("as_user"),
		Timeout: toolset.Seconds(a.Number("timeout_seconds", 0)), KillOnDisconnect: true, TellArtifacts: true,
		Mark: process.Mark{Name: a.Text("name"), Labels: a.Env("labels")}, MergeOutput: a.Bool("merge_output", false),
	}
	r.Shell, r.Argv = a.Command("command")
	wait, limit := toolset.Seconds(a.Number("wait_seconds", toolset.DefaultWait.Seconds())), int(a.Number("max_output_chars", toolset.DefaultOutput))
	switch {
	case id != "" && (r.Shell != "" || r.Argv != nil):
		a.Add("command_id", "is given beside command; it is of a command that was begun before")
	case id == "" && r.Shell == "" && len(r.Argv) == 0:
		a.Add("command", "is missing: what the shell is to run")
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, id == "")
	if err != nil {
		return nil, err
	}
	began := time.Now()
	var res code.ShellResult
	if id != "" {
		res, err = c.Shells.ShellCommand(ctx, c.Caller, ref, name, id, wait)
	} else {
		if r.Timeout == 0 {
			r.Timeout = min(toolset.DefaultTimeout, c.Server.MostCommandTime())
		}
		r.Wait = max(wait, time.Millisecond) // zero is for ever
		r.MaxStdout, r.MaxStderr = engine.DefaultOutput, engine.DefaultOutput
		res, err = c.Shells.ShellExec(ctx, c.Caller, ref, name, r, nil)
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), transport.ErrStopping) && id == "" {
			return nil, fault.Wrap(fault.Unavailable, err, "the server is stopping; the command goes on").
				WithRemedy("list_contexts shows the shell when the server is back, list_activity how the command ended")
		}
		return nil, err
	}
	out := shellAnswer(ctx, c, ref, &res, limit)
	if !res.Running && !res.NoArtifacts && id == "" {
		c.AddMade(ctx, out, ref, began)
	}
	return out, nil
}

// shellAnswer shows a command of a shell as run_command shows its own.
func shellAnswer(ctx context.Context, c *toolset.Call, ref string, res *code.ShellResult, limit int) *toolset.Answer {
	e := &toolset.Outcome{ExecResult: res.ExecResult}
	var stdout, stderr toolset.Capture
	stdout.Add(res.Stdout)
	stderr.Add(res.Stderr)
	c.Progress.Wrote(res.Stdout)
	e.Show(&stdout, &stderr, limit)
	out := &toolset.Answer{Verdict: e.Verdict()}
	if res.Running {
		out.Verdict = "still running: command " + res.ProcessID
		out.Lines = append(out.Lines,
			fmt.Sprintf(`next: run_in_shell with {"sandbox": %s, "shell": %s, "command_id": %s} waits for it and shows what it wrote`, toolset.Quote(ref), toolset.Quote(res.Shell.Name), toolset.Quote(res.ProcessID)),
			fmt.Sprintf(`end_context with {"sandbox": %s, "shell": %s, "how": "interrupt"} ends it, and the shell stays`, toolset.Quote(ref), toolset.Quote(res.Shell.Name)))
	}
	out.Verdict += " · shell " + res.Shell.Name + " · sandbox " + ref
	if !e.Whole() {
		out.Verdict += " · output shortened"
		out.Notes = append(out.Notes, "output was shortened; write it to a file with > out.log 2>&1 and read that")
	}
	if res.Shell.Restarted != "" {
		out.Notes = append(out.Notes, "the shell was begun anew before this command, and what earlier ones left is gone: "+res.Shell.Restarted)
	}
	if res.Shell.Ended {
		out.Notes = append(out.Notes, "the command took the shell with it; the next one begins another")
	}
	if !res.Running {
		out.Lines = append(out.Lines, e.Reasons(ctx, c)...)
		out.Lines = append(out.Lines, toolset.Changed(res.Changes, res.ChangesTotal, res.ChangesComplete)...)
	}
	out.Sections = e.Sections("")
	return out
}

func openTerminal() toolset.Tool {
	return toolset.Tool{
		Name: "open_terminal", Title: "Open a terminal", Destructive: true, OpenWorld: true,
		About: "Start a program at a terminal of a sandbox, for what needs one: editors, debuggers, prompts for a password. read_process, write_process (keys, as they are: \\u0003 is Ctrl-C) and stop_process work on it, resize_terminal changes its size.",
		Params: []toolset.Param{
			{Name: "command", Kind: toolset.Text, About: "Shell text. Default: a login shell.", Aliases: []string{"cmd"}},
			paramWhich(),
			{Name: "cols", Kind: toolset.Integer, Min: 1, Max: mostTerminal, About: "Columns, default 80."},
			{Name: "rows", Kind: toolset.Integer, Min: 1, Max: mostTerminal, About: "Rows, default 24."},
			{Name: "cwd", Kind: toolset.Text, About: "Where it starts, default /workspace, as root /root.", Aliases: []string{"workdir"}},
			{Name: "env", Kind: toolset.Texts, About: "Environment variables.", Aliases: []string{"env_vars", "environment"}},
			{Name: "as_user", Kind: toolset.Text, About: "sandbox (default), root, or an account.", Aliases: []string{"user"}},
			paramOutput(),
		},
		Example: `{"command": "python3"}`,
		Run:     atTerminal,
	}
}

// mostTerminal is the most columns, or rows, of a terminal.
const mostTerminal = 1000

func atTerminal(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	r := engine.StartRequest{
		Cwd: a.Text("cwd"), Env: a.Env("env"), User: a.Text("as_user"),
		Terminal: &engine.TerminalSize{Cols: uint16(a.Number("cols", 0)), Rows: uint16(a.Number("rows", 0))},
	}
	if r.Shell, r.Argv = a.Command("command"); len(r.Argv) == 0 {
		r.Shell = orElse(r.Shell, sandbox.LoginShell)
	}
	limit := int(a.Number("max_output_chars", toolset.DefaultOutput))
	if err := a.Err(); err != nil {
		return nil, err
	}
	ref, err := place(ctx, c, true)
	if err != nil {
		return nil, err
	}
	rec, err := c.Processes.StartProcess(ctx, c.Caller, ref, r)
	if err != nil {
		return nil, err
	}
	seen, err := watchProcess(ctx, c, ref, rec.ID, watch{wait: longestWait / 15, quiet: settled})
	if err != nil {
		return nil, err
	}
	out := seen.answer(ctx, c, ref, limit)
	if seen.Result == nil {
		out.Verdict = "opened a terminal: " + out.Verdict
	}
	return out, nil
}

func resizeTerminal() toolset.Tool {
	return toolset.Tool{
		Name: "resize_terminal", Title: "Resize a terminal", Idempotent: true,
		About: "Tell a program at a terminal that this has another size.",
		Params: []toolset.Param{
			paramProcess(),
			paramSandbox(),
			{Name: "cols", Kind: toolset.Integer, Min: 1, Max: mostTerminal, Required: true, About: "Columns."},
			{Name: "rows", Kind: toolset.Integer, Min: 1, Max: mostTerminal, Required: true, About: "Rows."},
		},
		Example: `{"process": "p1b2c3", "cols": 120, "rows": 40}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			process, cols, rows := c.Args.Text("process"), int(c.Args.Number("cols", 0)), int(c.Args.Number("rows", 0))
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			ref, err := place(ctx, c, false)
			if err != nil {
				return nil, err
			}
			if err := c.Processes.ResizeProcess(ctx, c.Caller, ref, process, cols, rows); err != nil {
				return nil, noProcess(ctx, c, ref, process, err)
			}
			return &toolset.Answer{Verdict: fmt.Sprintf("the terminal of process %s has %d columns and %d rows", process, cols, rows)}, nil
		},
	}
}
