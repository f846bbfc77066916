// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"syscall"
	"time"

	"sandpit.dev/engine/core"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Extension runs something of its own in sandboxes, which is no process of theirs. Packages code and
// languages do. Its methods are called concurrently, of one sandbox Adopt not.
type Extension interface {
	// Adopt goes on with what an earlier server left running in a sandbox that is up. rows are
	// those of its commands that are not complete: Adopt takes its own, and returns the rest.
	// u is the engine's own use; Adopt does not end it. It calls no verb, since the sandbox's
	// turn is held. After an error it is called again, with the rows that are left then.
	Adopt(ctx context.Context, u *Use, rows []*sandbox.Event) (rest []*sandbox.Event, err error)
	// Command returns a command of its own by the id of its event; nil if it knows none.
	Command(u *Use, id string) Command
	// Private reports whether the output of a process is between the extension and that alone.
	Private(sandbox.Process) bool
}

// Command is a command of an Extension, for verbs about processes that are given its id.
type Command interface {
	// Await returns when the command has ended or wait has passed, or ctx's error, or why the
	// server does not wait any longer.
	Await(ctx context.Context, wait time.Duration) error
	// Signal passes a signal on. A command that has ended is fault.State, a signal that it
	// cannot take fault.Unsupported.
	Signal(ctx context.Context, sig syscall.Signal) error
}

// extensions are several, which are asked in their order.
type extensions []Extension

func (all extensions) Adopt(ctx context.Context, u *Use, rows []*sandbox.Event) (_ []*sandbox.Event, err error) {
	for _, x := range all {
		if rows, err = x.Adopt(ctx, u, rows); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (all extensions) Command(u *Use, id string) Command {
	for _, x := range all {
		if c := x.Command(u, id); c != nil {
			return c
		}
	}
	return nil
}

func (all extensions) Private(p sandbox.Process) bool {
	return slices.ContainsFunc(all, func(x Extension) bool { return x.Private(p) })
}

// Extend has x asked for what it runs, after those that were given before. It is called before Run.
func (e *Engine) Extend(x Extension) { e.extension = append(e.extension, x) }

// OnDeleted has gone called when a sandbox was deleted, in place of what was called before. gone calls no verb and does
// not wait.
func (e *Engine) OnDeleted(gone func(sandbox.ID)) { e.deleted.Store(&gone) }

// OnSet has set called when other settings are in force, in place of what was called before. set calls no verb and does not wait.
func (e *Engine) OnSet(set func()) { e.set.Store(&set) }

// Store returns the records, as the engine writes them: without the values of secrets.
func (e *Engine) Store() store.Store { return e.core.Store }

// Now returns the time as records have it.
func (e *Engine) Now() time.Time { return e.now() }

// Defaults returns what a request that leaves a field out gets.
func (e *Engine) Defaults() Defaults { return e.settings.Load().Defaults }

// Stopping returns the error of what ends because the server does.
func Stopping() error { return core.Stopping() }

// Bind returns a context that ends with ctx or with the engine; its cause is the error for the
// caller. It is for waiting that may be given up.
func (e *Engine) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	return e.group.Bind(ctx)
}

// Answered counts how long a command of a project took, from its request to its answer.
func (e *Engine) Answered(project string, took time.Duration) { e.core.Metrics.Answered(project, took) }

// attachedBy returns what the extension keeps with the sandbox.
func (b *entry) attachedBy(open func(sandbox.ID) any) any {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.attached == nil {
		b.attached = open(b.id)
	}
	return b.attached
}
