// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// find returns the entry that ref, an id or a key, names in the caller's project.
// What is another project's is as missing as what never was, and for a caller that reaches one sandbox
// alone so is every other. Release the entry.
func (e *Engine) find(ctx context.Context, c access.Caller, ref string) (*entry, error) {
	if !sandbox.ValidID(ref) {
		b, err := e.findKey(ctx, c.Project, ref)
		if err == nil && !c.Reaches(b.id) {
			e.release(b)
			return nil, core.NoSandbox(ref)
		}
		return b, err
	}
	if !c.Reaches(sandbox.ID(ref)) {
		return nil, core.NoSandbox(ref)
	}
	b, err := e.acquire(ctx, sandbox.ID(ref))
	if err != nil {
		return nil, e.core.Missing(ctx, c.Project, sandbox.ID(ref), err)
	}
	if s := b.record.Load(); s == nil || s.Project != c.Project {
		e.release(b)
		return nil, core.NoSandbox(ref)
	}
	return b, nil
}

// RecordOf returns a sandbox's record, which is not to be changed. It is for what decides who may do something, and so asks
// before that is known.
func (e *Engine) RecordOf(ctx context.Context, id sandbox.ID) (*sandbox.Sandbox, error) {
	b, err := e.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	defer e.release(b)
	if s := b.record.Load(); s != nil {
		return s, nil
	}
	return nil, core.NoSandbox(string(id))
}

// TokenRound returns a sandbox's project, and how often the tokens for it alone were ended.
func (e *Engine) TokenRound(ctx context.Context, id sandbox.ID) (project string, round int64, err error) {
	s, err := e.RecordOf(ctx, id)
	if err != nil {
		return "", 0, err
	}
	return s.Project, s.TokenRound, nil
}

// Successor returns the sandbox that has the place of one that was promoted away; see core.Core.Successor.
func (e *Engine) Successor(ctx context.Context, id sandbox.ID) (sandbox.ID, error) {
	s, err := e.core.Successor(ctx, "", id)
	if err != nil {
		return "", err
	}
	return s.ID, nil
}

// visit is what a verb about one sandbox starts with: may the caller do this at all, is
// the engine at work, and which entry is it. The verb leaves it by leave.
func (e *Engine) visit(ctx context.Context, c access.Caller, scope access.Scope, ref string) (*entry, error) {
	if err := e.enter(c, scope); err != nil {
		return nil, err
	}
	b, err := e.find(ctx, c, ref)
	if err != nil {
		e.group.Leave()
		return nil, err
	}
	return b, nil
}

// leave ends a visit.
func (e *Engine) leave(b *entry) {
	e.release(b)
	e.group.Leave()
}

func (e *Engine) findKey(ctx context.Context, project, key string) (b *entry, err error) {
	if sandbox.CheckKey("sandbox", key) != nil {
		return nil, core.NoSandbox(key)
	}
	for range upTries {
		var id sandbox.ID
		if b, id, err = e.findKeyOnce(ctx, project, key); !fault.Is(err, fault.NotFound) {
			return b, err
		}
		e.mu.Lock()
		now, ok := e.names[name{project, key}]
		e.mu.Unlock()
		if !ok || now == id {
			return nil, err
		}
	} // it passes to another just now
	return nil, err
}

func (e *Engine) findKeyOnce(ctx context.Context, project, key string) (b *entry, id sandbox.ID, err error) {
	e.mu.Lock()
	id, ok := e.names[name{project, key}]
	e.mu.Unlock()
	if !ok {
		err := e.core.Store.View(ctx, func(tx store.Tx) error {
			s, err := tx.Sandboxes().ByKey(project, key)
			if err == nil {
				id = s.ID
			}
			return err
		})
		if fault.Is(err, fault.NotFound) {
			return nil, id, core.NoSandbox(key)
		}
		if err != nil {
			return nil, id, err
		}
	}
	b, err = e.acquire(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil, id, core.NoSandbox(key)
	}
	if err != nil {
		return nil, id, err
	}
	// It may have been deleted, and the key given to another, since we looked.
	if s := b.record.Load(); s == nil || s.Project != project || s.Key != key {
		e.release(b)
		return nil, id, core.NoSandbox(key)
	}
	return b, id, nil
}

// take takes the turn of an entry, and finishes what an earlier verb had to leave.
func (e *Engine) take(ctx context.Context, of *entry) (held, error) {
	if err := of.whileMade(); err != nil {
		return held{}, err
	}
	b, err := of.take(ctx)
	if err != nil {
		return held{}, err
	}
	if err = e.outcomes.Wait(ctx, of); err == nil {
		err = e.reconcile(ctx, b, finishedLater)
	}
	return b.unless(err)
}

// finishedLater is why an event tells of what an earlier verb had to leave.
const finishedLater = "finished after an earlier failure"

// unless releases the turn where err is not nil.
func (b held) unless(err error) (held, error) {
	if err != nil {
		b.release()
		return held{}, err
	}
	return b, nil
}

// takeToWork is take for a verb that is not begun while the records have no room; see
// [store.Store].
func (e *Engine) takeToWork(ctx context.Context, of *entry) (held, error) {
	b, err := e.take(ctx, of)
	if err != nil || b.record.Load() == nil {
		return b, err
	}
	return b.unless(e.core.Store.Room())
}

// takeToStop is take for a verb that ends the sandbox's commands, whether or not its agent
// tells what became of them.
func (e *Engine) takeToStop(ctx context.Context, of *entry) (held, error) {
	if err := of.whileMade(); err != nil {
		return held{}, err
	}
	b, err := e.takeAway(ctx, of)
	if err != nil {
		return held{}, err
	}
	if err = e.outcomes.Wait(ctx, of); err == nil {
		err = e.reconcileInstance(ctx, b, finishedLater)
	}
	if err == nil {
		limit, cancel := context.WithTimeout(ctx, signPatience)
		if err = e.adoptOrphans(limit, b); limit.Err() != nil && ctx.Err() == nil || errors.Is(err, agent.ErrSilent) {
			err = nil
		}
		cancel()
	}
	return b.unless(err)
}

// takeToDelete is take for a verb that needs no reconciled sandbox: what cannot be
// finished, for want of room perhaps, can be deleted all the same.
func (e *Engine) takeToDelete(ctx context.Context, of *entry) (held, error) {
	if stop := of.making.Load(); stop != nil {
		(*stop)(errDeleted)
	}
	b, err := e.takeAway(ctx, of)
	if err != nil {
		return held{}, err
	}
	if err = e.outcomes.Wait(ctx, of); err == nil {
		err = e.reconcileInstance(ctx, b, finishedLater)
	}
	if s := b.record.Load(); err != nil && ctx.Err() == nil && s != nil && !b.uncertain() && s.State.CanBecome(sandbox.Deleting) {
		e.core.Log.Warn("a sandbox is deleted that could not be reconciled", "sandbox", b.id, "state", s.State, "error", err)
		return b, nil
	}
	return b.unless(err)
}

// verb runs a lifecycle verb to its end, in the sandbox's turn, and returns the
// record after it. take takes the turn: e.take, or one of its kin. do finds the record
// reconciled, unless take does without: Running and up, Paused, Stopped or Failed.
func (e *Engine) verb(ctx context.Context, c access.Caller, ref string, bound time.Duration, take func(context.Context, *entry) (held, error), do func(context.Context, held) error) (*sandbox.Sandbox, error) {
	for tries := 1; ; tries++ {
		b, err := e.visit(ctx, c, access.SandboxesWrite, ref)
		if err != nil {
			return nil, err
		}
		after, err := e.verbOn(ctx, b, ref, bound, take, do)
		again := err != nil && tries < upTries && e.passedOn(c, ref, b)
		e.leave(b)
		if !again {
			return after, err
		}
	}
}

func (e *Engine) verbOn(ctx context.Context, b *entry, ref string, bound time.Duration, take func(context.Context, *entry) (held, error), do func(context.Context, held) error) (*sandbox.Sandbox, error) {
	b.touch(e.now(), actCall)
	var after *sandbox.Sandbox
	err := e.turnWork(ctx, b, bound, take, func(ctx context.Context, b held) error {
		before := b.record.Load()
		if before == nil {
			return core.NoSandbox(ref)
		}
		if err := do(ctx, b); err != nil {
			return err
		}
		if after, _ = b.current(); after == nil { // it is deleted when it stops, for instance
			gone := *before
			gone.State = sandbox.Deleted
			after = &gone
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return after, nil
}

// turnWork is work in the entry's turn, which take takes. It keeps the entry for as long as it goes on.
func (e *Engine) turnWork(ctx context.Context, b *entry, bound time.Duration, take func(context.Context, *entry) (held, error), do func(context.Context, held) error) error {
	e.retain(b)
	return e.work(ctx, bound, func(ctx context.Context) error {
		defer e.release(b)
		own, err := take(ctx, b)
		if err != nil {
			return err
		}
		defer own.release()
		return do(ctx, own)
	}, nil)
}
