// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// What the ids of tasks begin with that outlive the server: then comes the id of a run;
// or of a sandbox, a dash, and the id of a command.
const (
	taskOfRun     = "run-"
	taskOfCommand = "command-"
)

// recorded reports whether the tool of that name begins what the next server can answer for.
func recorded(tool string) bool { return tool == "run_sandbox" || tool == "run_command" }

// callAbout is a call as those that began the tasks which outlive the server: what it
// answers with is what they would have. all are the profile's tools.
func (h *Handler) callAbout(req mcp.Request, all map[string]*tool) *call {
	c := h.call(transport.CallOf(req), &tool{})
	c.args, c.revived = newArgs(nil, nil), all
	return c
}

// past is the task of an earlier server of that id, by what became of the run or the
// command that it stands for; nil: the caller began none through MCP.
func (c *call) past(ctx context.Context, id string) (*transport.PastTask, error) {
	if run, ok := strings.CutPrefix(id, taskOfRun); ok {
		return c.pastRun(ctx, run)
	}
	if rest, ok := strings.CutPrefix(id, taskOfCommand); ok {
		of, process, _ := strings.Cut(rest, "-")
		return c.pastCommand(ctx, of, process)
	}
	return nil, nil
}

// ownVia is what the record of what was done through this coat says.
const ownVia = "mcp"

// pastRun makes a task of a run that the caller began; nil: the caller began none.
func (c *call) pastRun(ctx context.Context, id string) (*transport.PastTask, error) {
	c.tool = c.revived["run_sandbox"]
	run, err := c.engine.RunOf(ctx, c.Caller, id)
	if err != nil || c.tool == nil || run.Actor != c.Caller.Actor || run.Via != ownVia {
		return nil, err
	}
	t := &transport.PastTask{Created: run.CreatedAt, Updated: started(run), Message: "the run " + run.ID + " is " + string(run.State)}
	t.Stop = func(ctx context.Context) error {
		_, err := c.engine.CancelRun(ctx, c.Caller, id)
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
	streams, err := c.engine.RunStreams(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	t.Result = c.runAnswer(run, streams).result()
	return t, nil
}

// pastCommand makes a task of a command that the caller began; nil: the caller began none.
func (c *call) pastCommand(ctx context.Context, of, process string) (*transport.PastTask, error) {
	c.tool, c.ref = c.revived["run_command"], of
	if c.tool == nil || !sandbox.ValidID(of) || process == "" {
		return nil, nil
	}
	events, _, err := c.engine.Activity(ctx, c.Caller, of, store.EventQuery{ProcessID: process, Types: []sandbox.EventType{sandbox.EventExec}, Limit: 1})
	if err != nil || len(events) == 0 || events[0].Actor != c.Caller.Actor || events[0].Via != ownVia {
		return nil, err
	}
	ev := events[0]
	rec, err := c.engine.Process(ctx, c.Caller, of, process)
	if err != nil {
		return nil, err
	}
	t := &transport.PastTask{Created: ev.At, Updated: ev.At, Message: "process " + process + " runs"}
	t.Stop = func(ctx context.Context) error { return c.engine.KillProcess(ctx, c.Caller, of, process) }
	if rec.Result == nil {
		return t, nil
	}
	t.Ended, t.Message = rec.Result.EndedAt, ""
	t.Updated = t.Ended
	if rec.Result.Cause == sandbox.CauseKilled {
		t.Cancelled = true
		return t, nil
	}
	seen, err := c.watch(ctx, of, process, watch{})
	if err != nil {
		return nil, err
	}
	e := &ended{ExecResult: engine.ExecResult{
		ProcessID: process, Result: *rec.Result, Changes: ev.Changes, ChangesTotal: ev.ChangesTotal, ChangesComplete: len(ev.Changes) > 0,
	}}
	e.show(&seen.stdout, &seen.stderr, defaultOutput)
	s, err := c.engine.Get(ctx, c.Caller, of)
	if err != nil {
		return nil, err
	}
	out := c.commandAnswer(ctx, s.Ref(), ev.Cwd, e, ev.At)
	if seen.lost != "" {
		out.notes = append(out.notes, "some output is missing: "+seen.lost)
	}
	out.notes = append(out.notes, "the server that took this call was restarted since; this is what is on record of the command")
	t.Result = out.result()
	return t, nil
}
