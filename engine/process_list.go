// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Bounds of a page of processes.
const (
	DefaultProcessPage = 100
	MaxProcessPage     = 1000
)

// ProcessQuery says which processes of a sandbox are wanted.
type ProcessQuery struct {
	Running bool // only those that have not ended
	Tty     bool // only those at a terminal
	Newest  bool // first; else the oldest
	Limit   int  // zero: DefaultProcessPage; at most MaxProcessPage
	Cursor  string
}

// ProcessPage is one page of processes.
type ProcessPage struct {
	Items []sandbox.Process
	Next  string // the cursor of the next page; empty at the end
}

// ListProcesses returns the processes of a sandbox: of one that is up, as its agent
// knows them; of one that is down, as far as their events tell.
func (e *Engine) ListProcesses(ctx context.Context, c access.Caller, ref string, q ProcessQuery) (ProcessPage, error) {
	var k check.Fields
	if q.Limit < 0 || q.Limit > MaxProcessPage {
		k.Bad("limit", "%d is outside 1 to %d", q.Limit, MaxProcessPage)
	}
	after, ok := parsePlace(q.Cursor)
	if !ok {
		k.Bad("cursor", "%q is not a valid cursor", sandbox.Clip(q.Cursor, 40))
	}
	if err := k.Err(); err != nil {
		return ProcessPage{}, err
	}
	list := (*agent.Client).Processes
	if q.Running {
		list = (*agent.Client).Running
	}
	all, err := e.processes(ctx, c, ref, list)
	if fault.Is(err, fault.State) {
		all, err = e.pastProcesses(ctx, c, ref)
	}
	if err != nil {
		return ProcessPage{}, err
	}
	if q.Running {
		all = slices.DeleteFunc(all, func(r sandbox.Process) bool { return r.Result != nil })
	}
	if q.Tty {
		all = slices.DeleteFunc(all, func(r sandbox.Process) bool { return !r.Terminal })
	}
	order := 1
	if q.Newest {
		order = -1
	}
	slices.SortFunc(all, func(a, b sandbox.Process) int { return order * placeOf(a).compare(placeOf(b)) })
	if q.Cursor != "" {
		all = slices.DeleteFunc(all, func(r sandbox.Process) bool { return order*placeOf(r).compare(after) <= 0 })
	}
	limit := q.Limit
	if limit == 0 {
		limit = DefaultProcessPage
	}
	page := ProcessPage{Items: all}
	if len(all) > limit {
		page.Items = all[:limit]
		page.Next = placeOf(all[limit-1]).String()
	}
	return page, nil
}

// place is where a process stands in the order of starts.
type place struct {
	at int64 // Unix time in ns
	id string
}

func placeOf(r sandbox.Process) place { return place{r.StartedAt.UnixNano(), r.ID} }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.at, q.at), strings.Compare(p.id, q.id))
}

func (p place) String() string { return strconv.FormatInt(p.at, 36) + "." + p.id }

func parsePlace(s string) (place, bool) {
	if s == "" {
		return place{}, true
	}
	at, id, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(at, 36, 64)
	return place{n, id}, err == nil && sandbox.ValidID(id)
}

// pastProcesses returns the processes of a sandbox that is down, from their events.
func (e *Engine) pastProcesses(ctx context.Context, c access.Caller, ref string) ([]sandbox.Process, error) {
	rows, err := e.commandRows(ctx, c, ref, store.EventQuery{Limit: store.MaxPage})
	recs := make([]sandbox.Process, 0, len(rows))
	for _, ev := range rows {
		recs = append(recs, RecordOf(ev))
	}
	return recs, err
}

// pastProcess returns one process from its event.
func (e *Engine) pastProcess(ctx context.Context, c access.Caller, ref, processID string) (sandbox.Process, error) {
	rows, err := e.commandRows(ctx, c, ref, store.EventQuery{ProcessID: processID, Limit: 1})
	if err != nil {
		return sandbox.Process{}, err
	}
	if len(rows) == 0 {
		return sandbox.Process{}, fault.New(fault.NotFound, "there is no process %q in this sandbox", processID).
			WithRemedy("list its processes")
	}
	return RecordOf(rows[0]), nil
}

func (e *Engine) commandRows(ctx context.Context, c access.Caller, ref string, q store.EventQuery) (rows []*sandbox.Event, err error) {
	b, err := e.visit(ctx, c, access.SandboxesRead, ref)
	if err != nil {
		return nil, err
	}
	defer e.leave(b)
	if err := e.heardIfItAnswers(ctx, b); err != nil {
		return nil, err
	}
	if err := e.outcomes.wait(ctx, b); err != nil {
		return nil, err
	}
	q.Sandbox, q.Project = b.id, c.Project
	q.Types = []sandbox.EventType{sandbox.EventExec, sandbox.EventTerminal}
	err = e.store.View(ctx, func(tx store.Tx) (err error) {
		rows, _, err = tx.Events().List(q)
		return err
	})
	return rows, err
}

// RecordOf returns what the event of a command tells of it, as its record.
func RecordOf(ev *sandbox.Event) sandbox.Process {
	rec := sandbox.Process{
		ID: ev.ProcessID, State: sandbox.ProcessRunning, Shell: ev.Command, Cwd: ev.Cwd, User: ev.User,
		Terminal: ev.Type == sandbox.EventTerminal, StartedAt: ev.At,
		Clipped: len(ev.Command) >= sandbox.MaxEventCommand-len("…"),
	}
	if ev.Done {
		rec.State = sandbox.ProcessExited
		rec.Result = &sandbox.Result{
			ExitCode: ev.ExitCode, Signal: ev.Signal, Cause: ev.Cause, CauseDetail: ev.Detail,
			Duration: ev.Duration, EndedAt: ev.At.Add(ev.Duration).Round(time.Microsecond),
			StdoutBytes: ev.StdoutBytes, StderrBytes: ev.StderrBytes,
			StdoutTruncated: ev.StdoutTruncated, StderrTruncated: ev.StderrTruncated,
		}
	}
	return rec
}
