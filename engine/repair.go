// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"sandpit.dev/agent"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// repairsAtOnce bounds how many sandboxes are looked after at a time: mostly
// that is waiting for their agents.
const repairsAtOnce = 16

// repair makes what is and what the records say the same again, after a server
// that ended at any instant. Its error is the store's; what else fails is logged
// and tried again by the clock. Sandboxes that are stopped or archived need nothing, unless their
// disks are gone: however many there are, none is opened.
func (e *Engine) repair(ctx context.Context) error {
	began := time.Now()
	if err := e.count(ctx); err != nil {
		return err
	}
	if err := e.secrets.Reseal(ctx, e.core.Log); err != nil {
		return err
	}
	ids, err := e.unreconciledIDs(ctx)
	if err != nil {
		return err
	}
	diskless, err := e.janitor.RemoveStrangers(ctx)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(repairsAtOnce)
	for _, id := range ids {
		g.Go(func() error { return e.repairOne(gctx, id) })
	}
	for _, id := range diskless {
		g.Go(func() error { return e.repairDiskless(gctx, id) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := e.repairKept(ctx); err != nil {
		return err
	}
	if len(ids) > 0 {
		e.core.Log.Info("the sandboxes of the last run are looked after", "sandboxes", len(ids), "took", time.Since(began))
	}
	return nil
}

// count makes the figures those of the records.
func (e *Engine) count(ctx context.Context) error {
	return e.core.Store.View(ctx, func(tx store.Tx) error {
		counts, err := tx.Sandboxes().Count(store.SandboxQuery{})
		if err != nil {
			return fmt.Errorf("counting the sandboxes of the last run: %w", err)
		}
		e.core.Metrics.Found(counts)
		return nil
	})
}

// unreconciledIDs returns the sandboxes that are, or may be, not as their records say.
func (e *Engine) unreconciledIDs(ctx context.Context) ([]sandbox.ID, error) {
	var ids []sandbox.ID
	q := store.SandboxQuery{Limit: store.MaxPage, Oldest: true}
	q.States = slices.DeleteFunc(sandbox.States(), func(s sandbox.State) bool {
		return s.Down() || s == sandbox.Deleted
	})
	for {
		var page []*sandbox.Sandbox
		err := e.core.Store.View(ctx, func(tx store.Tx) (err error) {
			page, q.Cursor, err = tx.Sandboxes().List(q)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("reading the sandboxes of the last run: %w", err)
		}
		for _, s := range page {
			ids = append(ids, s.ID)
			if err := e.pinRestore(ctx, s); err != nil {
				return nil, err
			}
		}
		if q.Cursor == "" {
			return ids, nil
		}
	}
}

// repairOne reconciles one sandbox, and completes the rows of its commands.
func (e *Engine) repairOne(ctx context.Context, id sandbox.ID) error {
	b, err := e.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer e.release(b)
	own, err := b.take(ctx)
	if err != nil {
		return err
	}
	defer own.release()
	e.mu.Lock()
	e.unadopted[id] = struct{}{}
	e.mu.Unlock()
	sctx, cancel := context.WithTimeout(ctx, reconcileBound)
	defer cancel()
	err = e.reconcileInstance(sctx, own, "the server ended in the middle")
	if err == nil && b.standing() == nil {
		err = e.adoptOrphans(sctx, own)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		e.later(b)
		e.core.Log.Error("a sandbox of the last run cannot be repaired now; it is tried again", "sandbox", id, "error", err)
		return nil
	}
	if b.record.Load() == nil {
		return nil
	}
	e.core.Checkpoint("repair.reconciled")
	e.plan(b)
	if l := b.up(); l != nil && l.unheard.Load() {
		e.retain(b)
		e.group.Spawn(func(ctx context.Context) {
			defer e.release(b)
			select {
			case e.hearing <- struct{}{}:
			case <-ctx.Done():
				return
			}
			defer func() { <-e.hearing }()
			e.adoptBehind(ctx, b)
		})
	}
	return nil
}

// repairDiskless lets a sandbox be Failed that is stopped and has no disk, as with a new store.
func (e *Engine) repairDiskless(ctx context.Context, id sandbox.ID) error {
	b, err := e.acquire(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil // it was to be created or deleted, and its repair beside this one removed it
	}
	if err != nil {
		return err
	}
	defer e.release(b)
	own, err := b.take(ctx)
	if err != nil {
		return err
	}
	defer own.release()
	s := b.record.Load()
	if s == nil || s.State != sandbox.Stopped {
		return nil
	}
	_, _, err = e.parts(ctx, s)
	if missing, ok := errors.AsType[*missing](err); ok {
		err = e.fail(ctx, own, missing)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		e.core.Log.Error("a sandbox whose disk is not there cannot be recorded as failed; its start does it", "sandbox", id, "error", err)
	}
	return nil
}

// adoptOrphans looks after the commands of an earlier server, once what became of
// their sandbox is known: those of one that is paused wait until it goes on.
func (e *Engine) adoptOrphans(ctx context.Context, b held) error {
	e.mu.Lock()
	_, orphans := e.unadopted[b.id]
	e.mu.Unlock()
	s, l := b.record.Load(), b.up()
	unheard := l != nil && l.unheard.Load()
	if !orphans && !unheard || s != nil && s.State == sandbox.Paused {
		return nil
	}
	if unheard {
		if err := e.hear(ctx, b, l); err != nil {
			return err
		}
		if b.up() != l {
			return nil // it was found down, and they with it
		}
	}
	if s != nil && orphans {
		if err := e.adoptCommands(ctx, b); err != nil {
			return err
		}
	}
	if unheard {
		l.gate.TrustOwed(ctx)
		l.unheard.Store(false)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.unadopted, b.id)
	return nil
}

// adoptCommands completes the rows of commands that have ended since, and
// follows those that still run.
func (e *Engine) adoptCommands(ctx context.Context, b held) error {
	var rows []*sandbox.Event
	err := e.core.Store.View(ctx, func(tx store.Tx) (err error) {
		rows, err = tx.Events().Unfinished(b.id)
		return err
	})
	if err != nil || len(rows) == 0 {
		return err
	}
	last := b.lastUse()
	l := b.holdUnheard(last.At, last.What) // looking at it is no use of it
	if l == nil {
		return e.closeOrphans(ctx, b, rows)
	}
	defer func() {
		last := b.lastUse()
		b.unhold(last.At, last.What)
	}()
	if rows, err = e.extension.Adopt(ctx, &Use{e, b.entry, l, core.System, actCode}, rows); err != nil {
		return err
	}
	for _, ev := range rows {
		if err := e.adoptCommand(ctx, b.entry, l, ev); err != nil {
			return err
		}
	}
	return nil
}

// cutOffCause is what ended the commands of a sandbox that is down.
func cutOffCause(s *sandbox.Sandbox) (sandbox.Cause, string) {
	switch s.StopCause {
	case sandbox.CauseOOM, sandbox.CauseKilled, sandbox.CauseHost, sandbox.CauseRestore:
		return s.StopCause, s.StopDetail
	}
	return sandbox.CauseStopped, s.StopDetail
}

func (e *Engine) adoptCommand(ctx context.Context, b *entry, l *session, ev *sandbox.Event) error {
	rec, err := l.client.Process(ctx, ev.ProcessID)
	switch {
	case fault.Is(err, fault.NotFound):
		process.CutOff(ev, sandbox.CauseHost, process.NeverHeardOf, e.now())
		return e.commitWith(ctx, b, func(*sandbox.Sandbox) {}, func(tx store.Tx) error { return tx.Events().Finish(ev) })
	case err == nil && rec.Result != nil:
		e.core.Metrics.Ran(ev, rec.Result)
		return e.finish(ctx, b, ev, ExecResult{ProcessID: ev.ProcessID, Result: *rec.Result})
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, agent.ErrSilent):
		return err
	}
	// It runs, or its agent cannot say so now; the follower finds out.
	u, err := e.adoptUse(b, l, ev)
	if err != nil {
		return err
	}
	f := newFollower(u, ev, 0)
	e.group.Spawn(f.stay)
	return nil
}

func (e *Engine) adoptUse(b *entry, l *session, ev *sandbox.Event) (*Use, error) {
	if err := e.group.Enter(); err != nil {
		return nil, err
	}
	e.retain(b)
	b.occupy()
	return &Use{e, b, l, core.Actor{Name: ev.Actor, Via: ev.Via}, whatOf(ev.Type)}, nil
}

// whatOf is the word for a use that an event tells of.
func whatOf(t sandbox.EventType) string {
	switch t {
	case sandbox.EventTerminal:
		return actTerminal
	case sandbox.EventCode, sandbox.EventContext, sandbox.EventLanguageServer:
		return actCode
	}
	return actExec
}
