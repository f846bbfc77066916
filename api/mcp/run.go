// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func runSandbox() tool {
	return tool{
		name: "run_sandbox", title: "Run commands in order", destructive: true, openWorld: true,
		about: "Run a batch of commands, one after the other, in the sandbox of an identifier, which the first run creates. " +
			"The batch ends at the first failure unless options.continue_on_error or the command's allow_failure says otherwise. " +
			"It waits for the end, at most options.await_timeout_ms; the run goes on after that, and run_id waits again. " +
			"Files under /artifacts are kept for download after each run. For single commands run_command is simpler.",
		params: []param{
			{name: "identifier", kind: text, required: true, field: "sandbox", about: "1 to 36 letters, digits, - and _. The same identifier gives the same sandbox.", aliases: []string{"sandbox", "session_key"}},
			{name: "commands", kind: nested, schema: commandsSchema, about: "a list like [{\"shell\": \"ls\"}]"},
			{name: "options", kind: nested, schema: optionsSchema(true)},
			{name: "run_id", kind: text, about: "Instead of commands: a run that goes on, to wait for."},
		},
		example: `{"identifier": "chat-1", "commands": [{"shell": "python3 --version"}]}`,
		run:     func(ctx context.Context, c *call) (*answer, error) { return runBatch(ctx, c, true) },
	}
}

// defaultAwait is how long a call waits for its run that says nothing of it.
const defaultAwait = 30 * time.Second

// runOutput bounds the output in the answer of a run, in characters; every
// command gets an equal share, and leastShare at least.
const (
	runOutput  = 24_000
	leastShare = 600
)

// runBatch starts a run, and waits for it if it is to: by default, if await is set.
func runBatch(ctx context.Context, c *call, await bool) (*answer, error) {
	r := readRun(c.args, await)
	if err := c.args.err(); err != nil {
		return nil, err
	}
	c.ref = r.Sandbox
	var started *sandbox.Run
	var err error
	if r.id != "" {
		if started, err = c.engine.RunOf(ctx, c.Caller, r.id); err == nil && started.Identifier != r.Sandbox && string(started.Sandbox) != r.Sandbox {
			err = fault.New(fault.NotFound, "the run %s is of another sandbox than %q", r.id, clip(r.Sandbox))
		}
	} else {
		started, err = c.engine.StartRun(ctx, c.Caller, r.RunRequest)
	}
	if err != nil {
		return nil, err
	}
	if !r.await {
		return c.runStarted(started), nil
	}
	c.Task.StandFor(taskOfRun + started.ID)
	if c.Task != nil && !r.timed {
		r.wait = engine.MaxCommandTimeout // whoever asked gets a task meanwhile
	}
	run, err := c.awaitRun(ctx, started, r.wait)
	if err != nil {
		return nil, c.leaveRun(ctx, started, r.id != "", err)
	}
	streams, err := c.engine.RunStreams(ctx, c.Caller, run.ID)
	if err != nil {
		return nil, err
	}
	return c.runAnswer(run, streams), nil
}

// awaitRun waits until a run has ended, or wait has passed, and shows what it gives
// out as progress.
func (c *call) awaitRun(ctx context.Context, started *sandbox.Run, wait time.Duration) (*sandbox.Run, error) {
	c.progress.say("the run " + started.ID + " is " + string(started.State))
	until := time.Now().Add(wait)
	for after := int64(0); ; {
		left := time.Until(until)
		run, events, err := c.engine.RunEvents(ctx, c.Caller, started.ID, after, max(left, 0))
		if err != nil {
			return nil, err
		}
		for _, ev := range events {
			after = ev.Seq
			switch ev.Type {
			case sandbox.RunCommandStarted:
				c.progress.say(fmt.Sprintf("command %d of %d", ev.Command+1, len(run.Commands)))
			case sandbox.RunCommandStdout, sandbox.RunCommandStderr:
				c.progress.wrote(ev.Data)
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
func (c *call) leaveRun(ctx context.Context, run *sandbox.Run, guest bool, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), transport.ErrStopping) || ctx.Err() == nil && fault.Is(err, fault.Unavailable):
		return fault.Wrap(fault.Unavailable, err, "the server is stopping; the run %s goes on when it is back", run.ID).
			WithRemedy("%s", strings.Join(c.nextOf(run), "; "))
	case ctx.Err() == nil || guest:
		return err
	}
	kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), killBound)
	defer cancel()
	if _, kerr := c.engine.CancelRun(kill, c.Caller, run.ID); kerr != nil && !fault.Is(kerr, fault.NotFound) {
		c.log.WarnContext(ctx, "the run of a cancelled call was not cancelled", "run", run.ID, "error", kerr)
	}
	return err
}
