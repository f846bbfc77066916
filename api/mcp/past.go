// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp/batch"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// taskOfCommand begins the id of a task that stands for a command: then come the id of the
// sandbox, a dash, and that of the command.
const taskOfCommand = "command-"

// recorded reports whether the tool of that name begins what the next server can answer for.
func recorded(tool string) bool { return tool == "run_sandbox" || tool == "run_command" }

// callAbout is a call as those that began the tasks which outlive the server: what it
// answers with is what they would have.
func (h *Handler) callAbout(req mcp.Request) *toolset.Call {
	c := h.call(transport.CallOf(req), &toolset.Tool{})
	c.Args = toolset.NewArgs(nil, nil)
	return c
}

// past is the task of an earlier server of that id, by what became of the run or the
// command that it stands for; nil: the caller began none through MCP. all are the profile's
// tools.
func past(ctx context.Context, c *toolset.Call, id string, all map[string]*toolset.Tool) (*transport.PastTask, error) {
	if run, ok := strings.CutPrefix(id, batch.TaskPrefix); ok {
		return pastRun(ctx, c, run, all["run_sandbox"])
	}
	if rest, ok := strings.CutPrefix(id, taskOfCommand); ok {
		of, process, _ := strings.Cut(rest, "-")
		return pastCommand(ctx, c, of, process, all["run_command"])
	}
	return nil, nil
}

// ownVia is what the record of what was done through this coat says.
const ownVia = "mcp"

// pastRun makes a task of a run that the caller began; nil: the caller began none.
func pastRun(ctx context.Context, c *toolset.Call, id string, by *toolset.Tool) (*transport.PastTask, error) {
	c.Tool = by
	run, err := c.Engine.RunOf(ctx, c.Caller, id)
	if err != nil || c.Tool == nil || run.Actor != c.Caller.Actor || run.Via != ownVia {
		return nil, err
	}
	t := &transport.PastTask{Created: run.CreatedAt, Updated: batch.Started(run), Message: "the run " + run.ID + " is " + string(run.State)}
	t.Stop = func(ctx context.Context) error {
		_, err := c.Engine.CancelRun(ctx, c.Caller, id)
		return err
	}
	if !run.State.Ended() {
		return t, nil
	}
	t.Ended, t.Updated, t.Message = run.EndedAt, run.EndedAt, ""
	if run.State == sandbox.RunCanceled {
		t.Cancelled = true
		return t, nil
	}
	streams, err := c.Engine.RunStreams(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	t.Result = batch.Answer(c, run, streams).Result()
	return t, nil
}

// pastCommand makes a task of a command that the caller began; nil: the caller began none.
func pastCommand(ctx context.Context, c *toolset.Call, of, process string, by *toolset.Tool) (*transport.PastTask, error) {
	c.Tool, c.Ref = by, of
	if c.Tool == nil || !sandbox.ValidID(of) || process == "" {
		return nil, nil
	}
	events, _, err := c.Engine.Activity(ctx, c.Caller, of, store.EventQuery{ProcessID: process, Types: []sandbox.EventType{sandbox.EventExec}, Limit: 1})
	if err != nil || len(events) == 0 || events[0].Actor != c.Caller.Actor || events[0].Via != ownVia {
		return nil, err
	}
	ev := events[0]
	rec, err := c.Engine.Process(ctx, c.Caller, of, process)
	if err != nil {
		return nil, err
	}
	t := &transport.PastTask{Created: ev.At, Updated: ev.At, Message: "process " + process + " runs"}
	t.Stop = func(ctx context.Context) error { return c.Engine.KillProcess(ctx, c.Caller, of, process) }
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
	s, err := c.Engine.Get(ctx, c.Caller, of)
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
