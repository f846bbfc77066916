// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"

	"sandpit.dev/engine/process"
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
		rows, err := tx.Events().Unfinished(b.id)
		for _, ev := range rows {
			if ev.Type != sandbox.EventExec && ev.Type != sandbox.EventTerminal {
				continue
			}
			process.Close(ev, l.ended(ev.ProcessID, process.Unseen(ev, e.now())).Result)
			if err := tx.Events().Finish(ev); err != nil {
				return err
			}
		}
		return err
	})
}

// closeOrphans completes the rows of commands of an earlier server whose sandbox is down.
func (e *Engine) closeOrphans(ctx context.Context, b held, rows []*sandbox.Event) error {
	s := b.record.Load()
	cause, detail := cutOffCause(s)
	inst, err := e.open(ctx, s)
	if err != nil {
		inst = nil // its disk is gone, and what its processes wrote with it
	}
	for _, ev := range rows {
		if ev.Type == sandbox.EventExec || ev.Type == sandbox.EventTerminal {
			process.Close(ev, process.Ended(inst, ev.ProcessID, process.Unseen(ev, e.now()), cause, detail).Result)
		} else {
			process.CutOff(ev, cause, detail, e.now())
		}
	}
	return e.core.Store.Update(ctx, func(tx store.Tx) error {
		for _, ev := range rows {
			if err := tx.Events().Finish(ev); err != nil {
				return err
			}
		}
		return nil
	})
}

// tellEnds corrects what an agent says of processes that ended with an earlier life of
// its sandbox: it knows at most that it was taken down, and their events know the rest.
func (u *Use) tellEnds(ctx context.Context, recs []sandbox.Process) error {
	cut := make(map[string]*sandbox.Process)
	for i := range recs {
		if r := recs[i].Result; r != nil && (r.Cause == sandbox.CauseStopped || r.Cause == sandbox.CauseHost) {
			cut[recs[i].ID] = &recs[i]
		}
	}
	if len(cut) == 0 {
		return nil
	}
	if err := u.e.outcomes.Wait(ctx, u.b); err != nil {
		return err
	}
	q := store.EventQuery{Sandbox: u.b.id, Types: []sandbox.EventType{sandbox.EventExec, sandbox.EventTerminal}, Limit: store.MaxPage}
	if len(cut) == 1 {
		for id := range cut {
			q.ProcessID = id
		}
	}
	var rows []*sandbox.Event
	err := u.e.core.Store.View(ctx, func(tx store.Tx) (err error) {
		rows, _, err = tx.Events().List(q)
		return err
	})
	if err != nil {
		return err
	}
	for _, ev := range rows {
		rec := cut[ev.ProcessID]
		if rec == nil || !ev.Done {
			continue
		}
		res := *rec.Result
		switch {
		case res.StdoutCut == sandbox.CutAgent || res.ExitCode == -1: // the agent's guess
			told := process.Record(ev).Result
			told.StdoutCut, told.StderrCut, told.StdoutLost, told.StderrLost = res.StdoutCut, res.StderrCut, res.StdoutLost, res.StderrLost
			res = *told
		case ev.Cause != sandbox.CauseNone:
			res.Cause, res.CauseDetail = ev.Cause, ev.Detail
		}
		rec.Result = &res
	}
	return nil
}
