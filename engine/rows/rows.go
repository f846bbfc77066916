// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package rows reads and writes, in a transaction of the caller's, what events have on record of commands: how they ended, by whom
// they were sent signals, what they are called. It knows no verb.
package rows

import (
	"time"

	"sandpit.dev/engine/process"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// FinishAll completes every unfinished row of a sandbox with one cause.
func FinishAll(tx store.Tx, id sandbox.ID, cause sandbox.Cause, detail string, at time.Time) error {
	all, err := tx.Events().Unfinished(id)
	if err != nil {
		return err
	}
	for _, ev := range all {
		process.CutOff(ev, cause, detail, at)
	}
	return Finish(tx, all)
}

// Finish writes rows that are completed.
func Finish(tx store.Tx, all []*sandbox.Event) error {
	for _, ev := range all {
		if err := tx.Events().Finish(ev); err != nil {
			return err
		}
	}
	return nil
}

// SignalAll notes in the rows of a sandbox's commands that run, or of those of a context, by whom they are sent a
// signal. It returns their ids.
func SignalAll(tx store.Tx, id sandbox.ID, contextID string, s sandbox.Signaled) (ids []string, err error) {
	all, err := tx.Events().Unfinished(id)
	if err != nil {
		return nil, err
	}
	for _, ev := range all {
		if contextID != "" && ev.ContextID != contextID {
			continue
		}
		if _, _, err := tx.Events().Signal(id, ev.ProcessID, s); err != nil {
			return nil, err
		}
		ids = append(ids, ev.ProcessID)
	}
	return ids, nil
}

// Holder returns the id of the process that has a name and whose row is unfinished; "": there is none.
func Holder(tx store.Tx, id sandbox.ID, name string) (string, error) {
	all, _, err := tx.Events().List(store.EventQuery{Sandbox: id, Name: name, Named: true, Limit: 1})
	if err != nil || len(all) == 0 || all[0].Done {
		return "", err
	}
	return all[0].ProcessID, nil
}

// Mark adds to processes the names and labels that are on record, and by whom they were sent signals.
func Mark(tx store.Tx, id sandbox.ID, recs []sandbox.Process) error {
	if len(recs) == 0 {
		return nil
	}
	q := store.EventQuery{Sandbox: id, Named: true, Limit: store.MaxPage}
	if len(recs) == 1 {
		q.ProcessID, q.Limit = recs[0].ID, 1
	}
	at, oldest := make(map[string]*sandbox.Process, len(recs)), recs[0].StartedAt
	for i := range recs {
		at[recs[i].ID] = &recs[i]
		if recs[i].StartedAt.Before(oldest) {
			oldest = recs[i].StartedAt
		}
	}
	oldest = oldest.Add(-time.Hour) // the clocks of agent and server need not agree
	for {
		all, next, err := tx.Events().List(q)
		if err != nil {
			return err
		}
		for _, ev := range all {
			if rec := at[ev.ProcessID]; rec != nil {
				rec.Name, rec.Labels = ev.Name, ev.Labels
				if rec.Result != nil {
					process.Complete(rec.Result, ev.Signaled)
				}
			}
		}
		if next == "" || q.Limit == 1 || all[len(all)-1].At.Before(oldest) {
			return nil
		}
		q.Cursor = next
	}
}

// CutOff returns those of processes whose end an agent tells as that of its sandbox, by their ids.
func CutOff(recs []sandbox.Process) map[string]*sandbox.Process {
	cut := make(map[string]*sandbox.Process)
	for i := range recs {
		if r := recs[i].Result; r != nil && (r.Cause == sandbox.CauseStopped || r.Cause == sandbox.CauseHost) {
			cut[recs[i].ID] = &recs[i]
		}
	}
	return cut
}

// Correct makes the results of processes that were cut off what their rows say, as far as those are done.
func Correct(tx store.Tx, id sandbox.ID, cut map[string]*sandbox.Process) error {
	q := store.EventQuery{Sandbox: id, Types: []sandbox.EventType{sandbox.EventExec, sandbox.EventTerminal}, Limit: store.MaxPage}
	if len(cut) == 1 {
		for one := range cut {
			q.ProcessID = one
		}
	}
	all, _, err := tx.Events().List(q)
	if err != nil {
		return err
	}
	for _, ev := range all {
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
