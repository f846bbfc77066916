// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Use begins a use of a sandbox for a command or a file call that the caller's scope allows; one
// that is down is brought up where any command does that. what is the use in a word for people.
// End it.
func (e *Engine) Use(ctx context.Context, c access.Caller, scope access.Scope, ref, what string) (*Use, error) {
	return e.use(ctx, c, scope, ref, what)
}

// UseUnrecorded is Use for what writes nothing: it is begun also while the records have no room.
func (e *Engine) UseUnrecorded(ctx context.Context, c access.Caller, scope access.Scope, ref, what string) (*Use, error) {
	return e.useBy(ctx, e.enter, c, scope, ref, what)
}

// Peek begins a use for what is asked of something that runs: it brings no sandbox up, but
// resumes a paused one. End it.
func (e *Engine) Peek(ctx context.Context, c access.Caller, ref string) (*Use, error) {
	return e.peek(ctx, c, access.SandboxesWrite, ref)
}

// Sandbox returns the id of the sandbox.
func (u *Use) Sandbox() sandbox.ID { return u.b.id }

// Client returns the client of the sandbox's agent, as it was up when the use began.
func (u *Use) Client() *agent.Client { return u.l.client }

// Watcher returns what tells of changes of the sandbox's files, where its runtime can.
func (u *Use) Watcher(ctx context.Context) (runtime.Watcher, bool) {
	w, ok := u.l.inst.(runtime.Watcher)
	if ok {
		u.awaitAccount(ctx)
	}
	return w, ok
}

// Exit waits a moment for the news that the sandbox went down, and returns how it did.
func (u *Use) Exit(ctx context.Context) (exit runtime.Exit, down bool) {
	if !u.wentDown(ctx) {
		return runtime.Exit{}, false
	}
	return u.l.exit, true
}

// Slept returns for how long the sandbox was paused, since it is up.
func (u *Use) Slept() time.Duration { return u.l.pauses.Total() }

// Attached returns what the extension keeps in memory with the sandbox, made by open at first.
// It is kept for as long as the sandbox is up, used or visited. open calls nothing of the engine.
func (u *Use) Attached(open func(sandbox.ID) any) any { return u.b.attachedBy(open) }

// Again returns another use of the sandbox as it is up, which has an end of its own.
func (u *Use) Again(what string) (*Use, error) {
	if err := u.e.group.Enter(); err != nil {
		return nil, err
	}
	u.e.retain(u.b)
	u.b.occupy()
	return &Use{u.e, u.b, u.l, u.who, what}, nil
}

// Work has do work on another use, to its end, whatever becomes of the caller: on ctx's end Work
// returns ctx's error at once, and do goes on for a bounded time.
func (u *Use) Work(ctx context.Context, what string, do func(context.Context, *Use) error) error {
	own, err := u.Again(what)
	if err != nil {
		return err
	}
	return u.e.work(ctx, createBound, func(ctx context.Context) error {
		defer own.End()
		return do(ctx, own)
	}, nil)
}

// Secrets returns the values that nothing of the sandbox's output may show. They are shared, and
// not to be changed.
func (u *Use) Secrets(ctx context.Context) ([][]byte, error) {
	set, err := u.e.secrets.Of(ctx, u.b.project, u.b.id)
	if err != nil {
		return nil, err
	}
	return set.Values, nil
}

// CheckRecord is Engine.CheckRecord for what is kept of this sandbox.
func (u *Use) CheckRecord(ctx context.Context, fields map[string][]string) error {
	return u.e.CheckRecord(ctx, u.b.project, u.b.id, fields)
}

// Kill ends a process and all that it started. One that is not there is fine.
func (u *Use) Kill(ctx context.Context, processID string) error {
	ctx, cancel := context.WithTimeout(ctx, killBound)
	defer cancel()
	err := u.l.client.Kill(ctx, processID, sandbox.CauseKilled)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// occupy begins a use of a sandbox that may be down.
func (b *entry) occupy() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy++
}
