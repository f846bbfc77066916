// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/volume"
	"sandpit.dev/sandbox"
)

// What follows is for packages above the engine that have verbs and goroutines of their own,
// beside the engine's verbs. See package runs.

// Enter begins a verb: it checks that the caller has the scope, and that the engine is Ready.
// The context that it returns ends with ctx, or with the engine: then its cause is the error for
// the caller. Run does not return before leave, which is called once.
func (e *Engine) Enter(ctx context.Context, c access.Caller, scope access.Scope) (bound context.Context, leave func(), err error) {
	if err := e.enter(c, scope); err != nil {
		return nil, nil, err
	}
	bound, cancel := e.group.Bind(ctx)
	return bound, func() { cancel(); e.group.Leave() }, nil
}

// Go runs fn in a goroutine that Run waits for. Its context ends with the engine. The caller is
// in a verb that it has entered, in such a goroutine, or called by Run.
func (e *Engine) Go(fn func(context.Context)) { e.group.Spawn(fn) }

// Work runs do to its end, whatever becomes of the caller, who is in a verb that it has entered: on ctx's end Work returns
// ctx's error at once, and do goes on until bound.
func (e *Engine) Work(ctx context.Context, bound time.Duration, do func(context.Context) error) error {
	return e.work(ctx, bound, do, nil)
}

// Hold finds the sandbox that ref names for a caller, who is in a verb that it has entered. It stays in memory until
// release, which is called once.
func (e *Engine) Hold(ctx context.Context, c access.Caller, ref string) (id sandbox.ID, release func(), err error) {
	b, err := e.find(ctx, c, ref)
	if err != nil {
		return "", nil, err
	}
	return b.id, func() { e.release(b) }, nil
}

// Secrets returns what has the secrets open.
func (e *Engine) Secrets() *secrets.Cache { return e.secrets }

// Volumes returns what keeps the volumes.
func (e *Engine) Volumes() *volume.Keeper { return e.volumes }

// ImageStore returns the images.
func (e *Engine) ImageStore() core.Images { return e.images }

// Pools returns what is made ahead of creates.
func (e *Engine) Pools() *prewarm.Pools { return e.pools }

// Connect takes a sandbox into use, as a command does, and returns the client of its agent. It
// starts the sandbox where a command would. what is the use in a word for people. release ends
// the use; it is called once.
func (e *Engine) Connect(ctx context.Context, c access.Caller, scope access.Scope, ref, what string) (client *agent.Client, release func(), err error) {
	u, err := e.use(ctx, c, scope, ref, what)
	if err != nil {
		return nil, nil, err
	}
	return u.l.client, u.End, nil
}

// CheckUser returns whom a command acts as that asks for user: fault.Invalid if there is no such
// user, fault.Denied if nothing may act as it.
func (e *Engine) CheckUser(user string) (string, error) {
	var k check.Fields
	user, err := k.User(user, e.settings.Load().ForbidRoot)
	if err == nil {
		err = k.Err()
	}
	return user, err
}

// CheckCommand returns what the agent would be asked for by a command. fault.Invalid names every
// wrong field.
func (e *Engine) CheckCommand(r ExecRequest) (agent.Command, error) { return e.command(r, true) }

// CheckRecord returns fault.Invalid if a field of what a record is to keep in plain text has the
// value of a secret in it: of one of the project's, or of the sandbox's, whose id may be empty.
func (e *Engine) CheckRecord(ctx context.Context, project string, id sandbox.ID, fields map[string][]string) error {
	return e.secrets.Refuse(ctx, project, id, fields)
}

// RunsDropped receives a value after a delete that dropped runs of the sandbox.
func (e *Engine) RunsDropped() <-chan struct{} { return e.runsDropped }
