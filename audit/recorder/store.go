// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"time"

	"sandpit.dev/audit"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Store returns the recorder's store. Each event that is written through it has its row in the audit log, in the same
// transaction.
func (r *Recorder) Store() store.Store { return auditedStore{r.store, r} }

type auditedStore struct {
	store.Store
	r *Recorder
}

func (s auditedStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	var t *auditedTx
	err := s.Store.Update(ctx, func(tx store.Tx) error {
		t = &auditedTx{Tx: tx, r: s.r, from: audit.Of(ctx)}
		if err := fn(t); err != nil {
			return err
		}
		for i := range t.rows {
			if err := s.r.append(tx, &t.rows[i].record); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && t != nil {
		t.committed()
	}
	return err
}

// auditedTx is one Update.
type auditedTx struct {
	store.Tx
	r     *Recorder
	from  *audit.Operation // nil: not known
	rows  []told
	begun []*sandbox.Event // commands
	ended []int64          // their events
}

// told is a row, and the operation that it tells of.
type told struct {
	record audit.Record
	from   *audit.Operation
}

func (t *auditedTx) Events() store.Events { return auditedEvents{t.Tx.Events(), t} }

type auditedEvents struct {
	store.Events
	t *auditedTx
}

func (e auditedEvents) Append(ev *sandbox.Event) error {
	if err := e.Events.Append(ev); err != nil {
		return err
	}
	if !ev.Done && ev.ProcessID != "" {
		kept := *ev
		e.t.begun = append(e.t.begun, &kept)
		return nil
	}
	e.t.tell(ev, e.t.from)
	return nil
}

func (e auditedEvents) Finish(ev *sandbox.Event) error {
	if err := e.Events.Finish(ev); err != nil {
		return err
	}
	from := e.t.from
	e.t.r.mu.Lock()
	if b := e.t.r.started[ev.Seq]; b != nil {
		from = b.from
	}
	e.t.r.mu.Unlock()
	e.t.ended = append(e.t.ended, ev.Seq)
	e.t.tell(ev, from)
	return nil
}

// tell notes the row of an event that an operation may have brought about.
func (t *auditedTx) tell(ev *sandbox.Event, from *audit.Operation) {
	if from != nil && !from.Did(ev) {
		from = nil
	}
	t.rows = append(t.rows, told{t.r.recordOf(ev, from), from})
}

// committed notes, after a commit, what runs and what has its row.
func (t *auditedTx) committed() {
	for _, row := range t.rows {
		if row.from != nil {
			row.from.Tell()
		}
	}
	if len(t.rows) == 0 && len(t.begun) == 0 {
		return
	}
	now := time.Now()
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if t.r.unsaid += len(t.rows); !t.r.beats {
		t.r.beats = true
		notify(t.r.wake)
	}
	for _, ev := range t.begun {
		from := t.from
		if from != nil && !from.Did(ev) {
			from = nil
		}
		if from != nil {
			from.Tell() // its row comes later
		}
		if len(t.r.started) >= maxBegun {
			continue // its end has a row all the same
		}
		rec := t.r.recordOf(ev, from)
		rec.Outcome, rec.Exit = audit.Running, nil
		t.r.started[ev.Seq] = &begun{record: rec, from: from, at: now}
	}
	for _, seq := range t.ended {
		delete(t.r.started, seq)
	}
}

// recordOf returns what an event has to say in the audit log.
func (r *Recorder) recordOf(ev *sandbox.Event, from *audit.Operation) audit.Record {
	rec := audit.Record{
		At: r.now(), Type: ev.Type, Outcome: outcomeOf(ev), Project: ev.Project, Sandbox: ev.Sandbox, Actor: ev.Actor, Via: ev.Via, Detail: ev.Detail,
		Event: ev.Seq, Process: ev.ProcessID, Context: ev.ContextID, Language: ev.Language, Labels: ev.Labels, Command: ev.Command, User: ev.User, Cwd: ev.Cwd,
		Signal: ev.Signal, Cause: ev.Cause, Millis: millis(ev.Duration),
		Stdout: audit.OutputOf(ev.StdoutBytes, ev.Stdout, r.o.Output), Stderr: audit.OutputOf(ev.StderrBytes, ev.Stderr, r.o.Output),
		Changes: ev.Changes, Changed: ev.ChangesTotal, Path: ev.Path, To: ev.To, Bytes: ev.Bytes,
	}
	if isCommand(ev) && ev.Done {
		exit := ev.ExitCode
		rec.Exit = &exit
	}
	if from != nil {
		from.Describe(&rec)
	}
	return rec
}

func isCommand(ev *sandbox.Event) bool {
	switch ev.Type {
	case sandbox.EventExec, sandbox.EventTerminal, sandbox.EventCode, sandbox.EventContext, sandbox.EventLanguageServer:
		return true
	}
	return false
}

func outcomeOf(ev *sandbox.Event) audit.Outcome {
	switch ev.Type {
	case sandbox.EventNetworkRefused, sandbox.EventNetworkDenied:
		return audit.Denied
	case sandbox.EventFailed:
		return audit.Failed
	case sandbox.EventExec, sandbox.EventTerminal, sandbox.EventCode, sandbox.EventContext, sandbox.EventLanguageServer,
		sandbox.EventUpload, sandbox.EventDownload, sandbox.EventFileMkdir, sandbox.EventFileMove, sandbox.EventFileDelete, sandbox.EventFileChange,
		sandbox.EventFileReplace, sandbox.EventReady:
		if !ev.OK {
			return audit.Failed
		}
	}
	return audit.OK
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
