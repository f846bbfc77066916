// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// What the ids of tasks begin with that outlive the server: then comes the id of a run;
// or of a sandbox, a dash, and the id of a command.
const (
	taskOfRun     = "run-"
	taskOfCommand = "command-"
)

// records reports whether the tool of that name begins what the next server can answer for.
func records(tool string) bool { return tool == "run_sandbox" || tool == "run_command" }

// callAbout is a call as those that began the tasks which outlive the server: what it
// answers with is what they would have. all are the profile's tools.
func (h *Handler) callAbout(req mcp.Request, all map[string]*tool) *call {
	c := h.callBy(req.GetExtra(), nil)
	c.tool, c.args = &tool{}, newArgs(nil, nil)
	c.revived = all
	return c
}

// revive answers about a task of an earlier server, by what became of the run or the
// command that it stands for. was is false where there is none that the caller began
// through MCP, or it ended too long ago: then there is no such task.
func revive(ctx context.Context, method string, c *call, id string) (r mcp.Result, was bool, err error) {
	var t *task
	var stop func(context.Context) error
	if run, ok := strings.CutPrefix(id, taskOfRun); ok {
		t, stop, err = c.reviveRun(ctx, run)
	} else if rest, ok := strings.CutPrefix(id, taskOfCommand); ok {
		of, process, _ := strings.Cut(rest, "-")
		t, stop, err = c.reviveCommand(ctx, of, process)
	} else {
		return nil, false, nil
	}
	switch {
	case fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) || err == nil && t == nil:
		return nil, false, nil
	case err != nil:
		return nil, true, taskFault(err)
	case !t.ended.IsZero() && time.Since(t.ended) > taskKept:
		return nil, false, nil
	}
	t.id = id
	switch {
	case method == methodTaskGet:
		return t.show(true), true, nil
	case method == methodTaskCancel && t.status == taskWorking:
		limited, cancel := context.WithTimeout(ctx, killBound)
		defer cancel()
		if err := stop(limited); err != nil && !fault.Is(err, fault.NotFound) {
			return nil, true, taskFault(err)
		}
	}
	return &taskDone{ResultType: "complete"}, true, nil
}

// taskFault tells of what could not be done about a task.
func taskFault(err error) error {
	e := fault.As(err)
	if e.Code == fault.Internal || errors.Is(err, context.Canceled) {
		return protocolError(nil)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: e.Message}
}

// ownVia is what the record of what was done through this coat says.
const ownVia = "mcp"

// reviveRun makes a task of a run that the caller began; nil: it is none.
func (c *call) reviveRun(ctx context.Context, id string) (*task, func(context.Context) error, error) {
	c.tool = c.revived["run_sandbox"]
	run, err := c.engine.RunOf(ctx, c.caller, id)
	if err != nil || c.tool == nil || run.Actor != c.caller.Actor || run.Via != ownVia {
		return nil, nil, err
	}
	t := &task{created: run.CreatedAt, updated: started(run), status: taskWorking, message: "the run " + run.ID + " is " + string(run.State)}
	stop := func(ctx context.Context) error {
		_, err := c.engine.CancelRun(ctx, c.caller, id)
		return err
	}
	if !run.State.Ended() {
		return t, stop, nil
	}
	t.ended, t.updated, t.message = run.EndedAt, run.EndedAt, ""
	if run.State == sandbox.RunCanceled {
		t.status = taskCancelled
		return t, stop, nil
	}
	streams, err := c.engine.RunStreams(ctx, c.caller, id)
	if err != nil {
		return nil, nil, err
	}
	t.status, t.result = taskCompleted, c.runAnswer(run, streams).result()
	return t, stop, nil
}

// reviveCommand makes a task of a command that the caller began; nil: it is none.
func (c *call) reviveCommand(ctx context.Context, of, process string) (*task, func(context.Context) error, error) {
	c.tool, c.ref = c.revived["run_command"], of
	if c.tool == nil || !sandbox.ValidID(of) || process == "" {
		return nil, nil, nil
	}
	events, _, err := c.engine.Activity(ctx, c.caller, of, store.EventQuery{ProcessID: process, Types: []sandbox.EventType{sandbox.EventExec}, Limit: 1})
	if err != nil || len(events) == 0 || events[0].Actor != c.caller.Actor || events[0].Via != ownVia {
		return nil, nil, err
	}
	ev := events[0]
	rec, err := c.engine.Process(ctx, c.caller, of, process)
	if err != nil {
		return nil, nil, err
	}
	t := &task{created: ev.At, updated: ev.At, status: taskWorking, message: "process " + process + " runs"}
	stop := func(ctx context.Context) error { return c.engine.KillProcess(ctx, c.caller, of, process) }
	if rec.Result == nil {
		return t, stop, nil
	}
	t.ended, t.message = rec.Result.EndedAt, ""
	t.updated = t.ended
	if rec.Result.Cause == sandbox.CauseKilled {
		t.status = taskCancelled
		return t, stop, nil
	}
	seen, err := c.watch(ctx, of, process, watch{})
	if err != nil {
		return nil, nil, err
	}
	e := &ended{ExecResult: engine.ExecResult{
		ProcessID: process, Result: *rec.Result, Changes: ev.Changes, ChangesTotal: ev.ChangesTotal, ChangesComplete: len(ev.Changes) > 0,
	}}
	e.show(&seen.stdout, &seen.stderr, defaultOutput)
	s, err := c.engine.Get(ctx, c.caller, of)
	if err != nil {
		return nil, nil, err
	}
	out := c.commandAnswer(ctx, s.Ref(), ev.Cwd, e, ev.At)
	if seen.lost != "" {
		out.notes = append(out.notes, "some output is missing: "+seen.lost)
	}
	out.notes = append(out.notes, "the server that took this call was restarted since; this is what is on record of the command")
	t.status, t.result = taskCompleted, out.result()
	return t, stop, nil
}
