// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/agent"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// tellEnds corrects what an agent says of processes that ended with an earlier life of
// its sandbox: it knows that it was taken down, and their events know what for.
func (u *use) tellEnds(ctx context.Context, recs []agent.Record) error {
	cut := make(map[string]*agent.Record)
	for i := range recs {
		if r := recs[i].Result; r != nil && (r.Cause == sandbox.CauseStopped || r.Cause == sandbox.CauseHost) {
			cut[recs[i].ID] = &recs[i]
		}
	}
	if len(cut) == 0 {
		return nil
	}
	if err := u.e.outcomes.wait(ctx, u.b); err != nil {
		return err
	}
	q := store.EventQuery{Sandbox: u.b.id, Types: []sandbox.EventType{sandbox.EventExec, sandbox.EventTerminal}, Limit: store.MaxPage}
	if len(cut) == 1 {
		for id := range cut {
			q.ProcessID = id
		}
	}
	var rows []*sandbox.Event
	err := u.e.store.View(ctx, func(tx store.Tx) (err error) {
		rows, _, err = tx.Events().List(q)
		return err
	})
	if err != nil {
		return err
	}
	for _, ev := range rows {
		if rec := cut[ev.ProcessID]; rec != nil && ev.Done && ev.Cause == sandbox.CauseRestore {
			res := *rec.Result
			res.Cause, res.CauseDetail = ev.Cause, ev.Detail
			rec.Result = &res
		}
	}
	return nil
}
