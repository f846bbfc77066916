// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

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
	events, _, err := c.Engine.Activity(ctx, c.Caller, of, store.EventQuery{ProcessID: process, Types: []sandbox.EventType{sandbox.EventExec}, Limit: 1})
	if err != nil || len(events) == 0 || events[0].Actor != c.Caller.Actor || events[0].Via != toolset.Via {
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
