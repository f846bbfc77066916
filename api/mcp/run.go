// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func runSandbox() tool {
	return tool{
		name: "run_sandbox", title: "Run commands in order", destructive: true,
		about: "Run a batch of commands, one after the other, in the sandbox of an identifier, which the first run creates, and wait for all. " +
			"The batch ends at the first failure unless options.continue_on_error or the command's allow_failure says otherwise. " +
			"Returns each command's status, exit code and output. For single commands run_command is simpler.",
		params: []param{
			{name: "identifier", kind: text, required: true, field: "key", about: "1 to 36 letters, digits, - and _. The same identifier gives the same sandbox.", aliases: []string{"sandbox", "session_key"}},
			{name: "commands", kind: nested, required: true, schema: commandsSchema, about: "a list like [{\"shell\": \"ls\"}]"},
			{name: "options", kind: nested, schema: optionsSchema},
		},
		example: `{"identifier": "chat-1", "commands": [{"shell": "python3 --version"}]}`,
		run:     runBatch,
	}
}

// runOutput bounds the output in the answer of a run, in characters; every
// command gets an equal share, and leastShare at least.
const (
	runOutput  = 24_000
	leastShare = 600
)

func runBatch(ctx context.Context, c *call) (*answer, error) {
	r := readRun(c.args)
	if err := c.args.err(); err != nil {
		return nil, err
	}
	c.ref = r.identifier
	if r.lock {
		c.progress.say("waiting for earlier runs of " + r.identifier)
		give, err := c.queues.take(ctx, queueKey{c.caller.Project, r.identifier})
		if err != nil {
			return nil, err
		}
		defer give()
	}
	created := time.Now()
	s, err := c.home(ctx, &r)
	if err != nil {
		return nil, err
	}
	defer c.leases.drop(s.ID, &r)
	run := newRun(&r, s, created, time.Now())
	share := max(leastShare, runOutput/len(r.commands))
	failed := false
	for i := range r.commands {
		began := time.Now()
		c.progress.say(fmt.Sprintf("command %d of %d", i+1, len(r.commands)))
		e, err := c.step(ctx, s, &r, i, share)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				err = ctx.Err()
			}
			return nil, err
		case err != nil && i == 0 && !ofCommand(err):
			return nil, err // nothing has run
		}
		run.ended(i, e, err, began)
		if err != nil && !ofCommand(err) || (err != nil || e.ExitCode != 0) && !r.commands[i].allowFailure {
			if !failed {
				run.fail(i)
			}
			if failed = true; !r.goOn || err != nil && !ofCommand(err) {
				break
			}
		}
	}
	if err := c.keep(ctx, s, &r, 0); err != nil {
		c.args.notes = append(c.args.notes, "when the sandbox will be deleted could not be set anew: "+fault.As(err).Message)
	}
	run.finish(failed)
	return run.answer(), nil
}

// step runs one command of a run.
func (c *call) step(ctx context.Context, s *sandbox.Sandbox, r *runArgs, i, share int) (*ended, error) {
	cmd := &r.commands[i]
	if err := c.keep(ctx, s, r, cmd.timeout); err != nil {
		return nil, err
	}
	return c.exec(ctx, string(s.ID), engine.ExecRequest{
		Shell: cmd.shell, Argv: cmd.argv, Cwd: cmd.cwd, Env: cmd.env, User: r.user, Timeout: cmd.timeout,
	}, share)
}

// ofCommand tells whether an error is a command's own (a directory that is
// missing, a bad variable), so that the others may still run.
func ofCommand(err error) bool {
	code := fault.Of(err)
	return code == fault.Invalid || code == fault.Denied || code == fault.TooLarge
}

// home gives the sandbox of a run's identifier, and makes it for the first one.
func (c *call) home(ctx context.Context, r *runArgs) (*sandbox.Sandbox, error) {
	if sandbox.ValidID(r.identifier) { // an id is no key; it may be that of a sandbox
		return c.engine.Get(ctx, c.caller, r.identifier)
	}
	ttl := r.ttl
	if ttl == 0 {
		ttl = defaultRunTTL
	}
	s, _, err := c.engine.Create(ctx, c.caller, engine.CreateRequest{Key: r.identifier, TTL: ttl})
	return s, err
}

// keep sets when the sandbox will be deleted: its ttl from the end of what may
// still run, so that the clock never strikes under a command. One that was made
// without an end keeps none unless the run asks for it, and an end that is
// later stays unless the run does.
func (c *call) keep(ctx context.Context, s *sandbox.Sandbox, r *runArgs, busy time.Duration) error {
	ttl := r.ttl
	if ttl == 0 {
		ttl = defaultRunTTL
	}
	now := time.Now()
	until := c.leases.set(s.ID, r, now.Add(busy)).Add(ttl)
	if r.ttl == 0 && (s.ExpiresAt.IsZero() || s.ExpiresAt.After(until) && !r.slid) {
		return nil
	}
	r.slid = true
	_, err := c.engine.Update(ctx, c.caller, string(s.ID), engine.Patch{ExpiresAt: &until})
	return err
}
