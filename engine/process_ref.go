// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/process"
	"sandpit.dev/engine/rows"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// processID returns the id of the process that a caller means by an id, by name:NAME or by pid:N.
// A name is that of the process which runs, or else of the one that had it last. A number inside
// is that of a process which runs.
func (e *Engine) processID(ctx context.Context, c access.Caller, ref, of string) (string, error) {
	p, err := process.ParseRef(of)
	switch {
	case err != nil || p.ID != "":
		return p.ID, err
	case p.Name != "":
		// No process begins with a name that another has: the one that runs is the newest.
		named, err := e.commandRows(ctx, c, ref, store.EventQuery{Name: p.Name, Named: true, Limit: 1})
		if err != nil {
			return "", err
		}
		if len(named) == 0 {
			return "", fault.New(fault.NotFound, "there is no process named %q in this sandbox", p.Name).WithRemedy("list its processes")
		}
		return named[0].ProcessID, nil
	}
	u, err := e.glance(ctx, c, ref)
	if err != nil {
		return "", err
	}
	defer u.End()
	recs, err := u.l.client.Running(ctx)
	if err != nil {
		return "", u.Fail(ctx, err)
	}
	for i := range recs {
		if recs[i].PID == p.PID {
			return recs[i].ID, nil
		}
	}
	return "", fault.New(fault.NotFound, "no process of this sandbox that runs has the number %d inside", p.PID).
		WithRemedy("list its processes: the numbers are those of what was started by a call, and not of what that started")
}

// markOne is mark for one process.
func (u *Use) markOne(ctx context.Context, rec *sandbox.Process) error {
	one := []sandbox.Process{*rec}
	err := u.mark(ctx, one)
	*rec = one[0]
	return err
}

// mark adds to what an agent says of processes the names and labels that are on record, and by whom they were sent signals.
func (u *Use) mark(ctx context.Context, recs []sandbox.Process) error {
	if len(recs) == 0 {
		return nil
	}
	for i := range recs {
		if recs[i].Result != nil {
			u.l.signals.Tell(recs[i].ID, recs[i].Result)
		}
	}
	return u.e.core.Store.View(ctx, func(tx store.Tx) error { return rows.Mark(tx, u.b.id, recs) })
}

// nameWait is how long a start waits for the outcome of a process to be committed that had its name.
const nameWait = 10 * time.Second

// intendAs is intend for a process with a name that another may have: fault.Exists where that runs. One that has
// ended is waited for, whose outcome is not committed yet.
func (u *Use) intendAs(ctx context.Context, cmd agent.Command, kind sandbox.EventType, mark process.Mark) (*sandbox.Event, error) {
	for until := time.Now().Add(nameWait); ; {
		changed := u.e.core.Store.Changed()
		ev, err := u.intend(ctx, cmd, kind, mark)
		if mark.Name == "" || !fault.Is(err, fault.Exists) {
			return ev, err
		}
		if err := u.e.outcomes.Wait(ctx, u.b); err != nil {
			return nil, err
		}
		holder := ""
		err = u.e.core.Store.View(ctx, func(tx store.Tx) (err error) {
			holder, err = rows.Holder(tx, u.b.id, mark.Name)
			return err
		})
		if err != nil {
			return nil, err
		}
		if holder == "" { // it has ended since
			continue
		}
		rec, err := u.l.client.Process(ctx, holder)
		if err != nil || rec.Result == nil || time.Now().After(until) {
			return nil, fault.New(fault.Exists, "a process named %q runs in this sandbox: %s", mark.Name, holder).
				WithRemedy("use that one as name:%s, wait for its end or kill it first, or choose another name", mark.Name)
		}
		t := time.NewTimer(rowPause)
		select {
		case <-changed:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}
