// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// taskOfRun begins the id of a task that stands for a run: then comes the run's id.
const taskOfRun = "run-"

// runOutput bounds the output in the answer of a run, in characters; every
// command gets an equal share, and leastShare at least.
const (
	runOutput  = 24_000
	leastShare = 600
)

// Run starts a run, and waits for it if it is to: by default, if await is set.
func Run(ctx context.Context, c *toolset.Call, await bool, d runs.Defaults) (*toolset.Answer, error) {
	r := readRun(c.Args, await, d)
	if err := c.Args.Err(); err != nil {
		return nil, err
	}
	c.Ref = r.Sandbox
	var started *sandbox.Run
	var err error
	if r.id != "" {
		if started, err = c.Runs.Get(ctx, c.Caller, r.id); err == nil && started.Identifier != r.Sandbox && string(started.Sandbox) != r.Sandbox {
			err = fault.New(fault.NotFound, "the run %s is of another sandbox than %q", r.id, toolset.Clip(r.Sandbox))
		}
	} else {
		started, err = c.Runs.Start(ctx, c.Caller, r.Request)
	}
	if err != nil {
		return nil, err
	}
	if !r.await {
		return startedAnswer(c, started), nil
	}
	c.Task.StandFor(taskOfRun + started.ID)
	if c.Task != nil && !r.timed {
		r.wait = engine.MaxCommandTimeout // whoever asked gets a task meanwhile
	}
	run, err := awaitRun(ctx, c, started, r.wait)
	if err != nil {
		return nil, leaveRun(ctx, c, started, r.id != "", err)
	}
	streams, err := c.Runs.Streams(ctx, c.Caller, run.ID)
	if err != nil {
		return nil, err
	}
	return Answer(c, run, streams), nil
}

// awaitRun waits until a run has ended, or wait has passed, and shows what it gives
// out as progress.
func awaitRun(ctx context.Context, c *toolset.Call, started *sandbox.Run, wait time.Duration) (*sandbox.Run, error) {
	c.Progress.Say("the run " + started.ID + " is " + string(started.State))
	until := time.Now().Add(wait)
	for after := int64(0); ; {
		left := time.Until(until)
		run, events, err := c.Runs.Events(ctx, c.Caller, started.ID, after, max(left, 0))
		if err != nil {
			return nil, err
		}
		for _, ev := range events {
			after = ev.Seq
			switch ev.Type {
			case sandbox.RunCommandStarted:
				c.Progress.Say(fmt.Sprintf("command %d of %d", ev.Command+1, len(run.Commands)))
			case sandbox.RunCommandStdout, sandbox.RunCommandStderr:
				c.Progress.Wrote(ev.Data)
			}
		}
		if run.State.Ended() || left <= 0 {
			return run, nil
		}
	}
}

// leaveRun decides what becomes of a run that nobody waits for any more: who cancels
// the call cancels the run; a server that stops does not, and neither does who only
// looked on.
func leaveRun(ctx context.Context, c *toolset.Call, run *sandbox.Run, guest bool, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), transport.ErrStopping) || ctx.Err() == nil && fault.Is(err, fault.Unavailable):
		return fault.Wrap(fault.Unavailable, err, "the server is stopping; the run %s goes on when it is back", run.ID).
			WithRemedy("%s", strings.Join(Next(c, run), "; "))
	case ctx.Err() == nil || guest:
		return err
	}
	kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), toolset.KillBound)
	defer cancel()
	if _, kerr := c.Runs.Cancel(kill, c.Caller, run.ID); kerr != nil && !fault.Is(kerr, fault.NotFound) {
		c.Log.WarnContext(ctx, "the run of a cancelled call was not cancelled", "run", run.ID, "error", kerr)
	}
	return err
}
