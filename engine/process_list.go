// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// ListProcesses returns the processes of a sandbox: of one that is up, as its agent
// knows them; of one that is down, as far as their events tell.
func (e *Engine) ListProcesses(ctx context.Context, c access.Caller, ref string, q process.Query) (process.Page, error) {
	if err := q.Check(); err != nil {
		return process.Page{}, err
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
		return process.Page{}, err
	}
	return q.Of(all), nil
}

// pastProcesses returns the processes of a sandbox that is down, from their events.
func (e *Engine) pastProcesses(ctx context.Context, c access.Caller, ref string) ([]sandbox.Process, error) {
	rows, err := e.commandRows(ctx, c, ref, store.EventQuery{Limit: store.MaxPage})
	recs := make([]sandbox.Process, 0, len(rows))
	for _, ev := range rows {
		recs = append(recs, process.Record(ev))
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
	return process.Record(rows[0]), nil
}

func (e *Engine) commandRows(ctx context.Context, c access.Caller, ref string, q store.EventQuery) (rows []*sandbox.Event, err error) {
	c = c.Inside()
	b, err := e.visit(ctx, c, access.SandboxesRead, ref)
	if err != nil {
		return nil, err
	}
	defer e.leave(b)
	if err := e.heardIfItAnswers(ctx, b); err != nil {
		return nil, err
	}
	if err := e.outcomes.Wait(ctx, b); err != nil {
		return nil, err
	}
	q.Sandbox, q.Project = b.id, c.Project
	q.Types = []sandbox.EventType{sandbox.EventExec, sandbox.EventTerminal}
	err = e.core.Store.View(ctx, func(tx store.Tx) (err error) {
		rows, _, err = tx.Events().List(q)
		return err
	})
	return rows, err
}
