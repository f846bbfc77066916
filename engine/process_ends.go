// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"sandpit.dev/engine/process"
	"sandpit.dev/engine/rows"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// endings are the ends of processes that went down with their sandbox, of one life of it.
// Whoever asks gets the same: who follows, who waits, and the event.
type endings struct {
	mu sync.Mutex
	of map[string]sandbox.Process
}

// ended returns how a process ended that went down with the sandbox, for which down is closed.
// Where nothing is left of its log, seen is all that is known.
func (l *session) ended(processID string, seen sandbox.Process) sandbox.Process {
	cause := l.exit.Cause
	if cause == sandbox.CauseNone {
		cause = sandbox.CauseHost
	}
	l.ends.mu.Lock()
	defer l.ends.mu.Unlock()
	if rec, ok := l.ends.of[processID]; ok {
		return rec
	}
	rec := process.Ended(l.inst, processID, seen, cause, l.exit.Detail)
	if l.ends.of == nil {
		l.ends.of = make(map[string]sandbox.Process)
	}
	l.ends.of[processID] = rec
	return rec
}

// closeRows takes a sandbox that is about to be deleted down and completes the rows of its
// commands, while their logs are there to tell.
func (e *Engine) closeRows(ctx context.Context, b held, l *session) error {
	if err := l.inst.Stop(ctx, 0); err != nil {
		return err
	}
	select {
	case <-l.down:
	case <-e.group.Context().Done():
		return nil // nobody watches it any more; the delete completes them
	case <-ctx.Done():
		return ctx.Err()
	}
	return e.core.Store.Update(ctx, func(tx store.Tx) error {
		all, err := tx.Events().Unfinished(b.id)
		all = slices.DeleteFunc(all, func(ev *sandbox.Event) bool { return ev.Type != sandbox.EventExec && ev.Type != sandbox.EventTerminal })
		for _, ev := range all {
			process.Close(ev, l.ended(ev.ProcessID, process.Unseen(ev, e.now())).Result)
		}
		return cmp.Or(err, rows.Finish(tx, all))
	})
}

// closeOrphans completes the rows of commands of an earlier server whose sandbox is down.
func (e *Engine) closeOrphans(ctx context.Context, b held, all []*sandbox.Event) error {
	s := b.record.Load()
	cause, detail := cutOffCause(s)
	inst, err := e.open(ctx, s)
	if err != nil {
		inst = nil // its disk is gone, and what its processes wrote with it
	}
	for _, ev := range all {
		if ev.Type == sandbox.EventExec || ev.Type == sandbox.EventTerminal {
			process.Close(ev, process.Ended(inst, ev.ProcessID, process.Unseen(ev, e.now()), cause, detail).Result)
		} else {
			process.CutOff(ev, cause, detail, e.now())
		}
	}
	return e.core.Store.Update(ctx, func(tx store.Tx) error { return rows.Finish(tx, all) })
}

// tellEnds corrects what an agent says of processes that ended with an earlier life of
// its sandbox: it knows at most that it was taken down, and their events know the rest.
func (u *Use) tellEnds(ctx context.Context, recs []sandbox.Process) error {
	cut := rows.CutOff(recs)
	if len(cut) == 0 {
		return nil
	}
	if err := u.e.outcomes.Wait(ctx, u.b); err != nil {
		return err
	}
	return u.e.core.Store.View(ctx, func(tx store.Tx) error { return rows.Correct(tx, u.b.id, cut) })
}
