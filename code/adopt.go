// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// extension is what the engine asks this package for; see [engine.Extension].
type extension struct{ s *Service }

// Command finds a command of any of the sandbox's shells that are in memory.
func (x extension) Command(u *engine.Use, id string) engine.Command {
	for _, cc := range x.s.open(u).list() {
		if c := cc.command(id); c != nil {
			return c
		}
	}
	return nil
}

// Private reports whether a process is a kernel.
func (extension) Private(rec sandbox.Process) bool {
	return kernel.IsCommand(rec.Argv) && !rec.Terminal
}

// Adopt goes on with the kernels of an earlier server that still run, and with the cells in
// them. Of the rows it leaves those that are not of code, and those of kernels that are no
// more; the kernels of single cells, and those that no context knows, it ends.
func (x extension) Adopt(ctx context.Context, u *engine.Use, rows []*sandbox.Event) ([]*sandbox.Event, error) {
	var rest, cells []*sandbox.Event
	for _, ev := range rows {
		switch {
		case ev.Type == sandbox.EventCode, ev.Type == sandbox.EventExec && ev.ContextID != "":
			cells = append(cells, ev)
			continue
		case ev.Type == sandbox.EventContext:
			adopted, err := x.s.adoptKernel(ctx, u, ev)
			if err != nil {
				return nil, err
			}
			if adopted {
				continue
			}
		}
		rest = append(rest, ev)
	}
	if len(cells) == 0 && len(rest) == len(rows) {
		return rest, nil
	}
	all, err := x.s.load(ctx, u)
	if err != nil {
		return nil, err
	}
	for _, ev := range cells {
		cc := all.find(func(cc *codeContext) bool { return cc.record().RunningID == ev.ProcessID })
		if cc != nil && cc.currentKernel() != nil {
			continue // it runs in a kernel that was adopted
		}
		if ev.Type == sandbox.EventExec {
			if _, err := u.Client().Process(ctx, ev.ProcessID); err == nil { // it ended with its shell, or is about to
				rest = append(rest, ev)
				continue
			}
		}
		if own := all.find(func(cc *codeContext) bool { return cc.record().ID == ev.ContextID }); ev.Type == sandbox.EventExec && cc == nil && own != nil && own.currentKernel() != nil {
			// Its shell is there and runs another, or none: its turn had not come.
			process.NotRun(ev, fault.New(fault.Unavailable, "the server ended before its turn came"), x.s.engine.Now())
		} else {
			process.CutOff(ev, sandbox.CauseHost, "the server ended while it ran, and its kernel is no more", x.s.engine.Now())
		}
		if err := x.s.store.Update(ctx, func(tx store.Tx) error { return tx.Events().Finish(ev) }); err != nil {
			return nil, err
		}
	}
	return rest, x.s.followCells(u, all, cells)
}

// adoptKernel goes on with one kernel, if its context is known and it runs.
func (s *Service) adoptKernel(ctx context.Context, u *engine.Use, ev *sandbox.Event) (bool, error) {
	all, err := s.load(ctx, u)
	if err != nil {
		return false, err
	}
	cc := all.find(func(cc *codeContext) bool { return cc.record().ProcessID == ev.ProcessID })
	rec, err := u.Client().Process(ctx, ev.ProcessID)
	if errors.Is(err, agent.ErrSilent) {
		return false, err
	}
	if err != nil || rec.Result != nil {
		if err == nil && cc != nil {
			cc.change(func(c *sandbox.Context) { c.Ended = "its kernel ended: " + exitOf(*rec.Result).String() })
		}
		return false, nil
	}
	k, why := (*codeKernel)(nil), "its context is not known"
	if cc != nil {
		secrets, err := u.Secrets(ctx)
		if err != nil { // what its cells say could not be kept clean of them
			why = reason(err)
		} else if k, why, err = resumeKernel(u, ev, cc.record()); err != nil {
			return false, err
		} else if k != nil {
			k.session.Redact(secrets)
		}
	}
	if k == nil {
		s.log.Warn("a kernel of the last run is ended", "sandbox", all.id, "process", ev.ProcessID, "reason", why)
		if err := u.Kill(ctx, ev.ProcessID); err != nil {
			s.log.Warn("a kernel of the last run cannot be ended", "sandbox", all.id, "process", ev.ProcessID, "error", err)
		}
		if cc != nil {
			cc.change(func(c *sandbox.Context) { c.Ended = why })
		}
		return false, nil
	}
	cc.mu.Lock()
	cc.kernel, cc.rec.Ended = k, ""
	cc.mu.Unlock()
	cc.watch(k)
	return true, nil
}

// resumeKernel makes a kernel of what its record kept, or returns why that cannot be. The error is
// that the server stops.
func resumeKernel(u *engine.Use, ev *sandbox.Event, rec sandbox.Context) (k *codeKernel, why string, err error) {
	var st savedState
	if err := json.Unmarshal(rec.State, &st); err != nil {
		return nil, "what was kept of it cannot be read", nil
	}
	p, err := u.AdoptBackground(ev, nil, st.Kernel.Cursor)
	if err != nil {
		return nil, "", err
	}
	session, err := kernel.Resume(st.Kernel, &transport{Background: p})
	if err != nil {
		p.Abandon()
		return nil, reason(err), nil
	}
	return &codeKernel{session: session, process: p}, "", nil
}

// followCells follows the cells that the kernels were at, on record or not.
func (s *Service) followCells(u *engine.Use, all *contexts, cells []*sandbox.Event) error {
	for _, cc := range all.list() {
		k := cc.currentKernel()
		if k == nil || k.session.Status() != kernel.Busy {
			continue
		}
		rec := cc.record()
		ev := (*sandbox.Event)(nil)
		for _, one := range cells {
			if one.ProcessID == rec.RunningID {
				ev = one
			}
		}
		if ev != nil && rec.UsedAt.After(ev.At) { // it waited for its turn
			ev.At = rec.UsedAt
		}
		own, err := u.Again(useCode)
		if err != nil {
			return err
		}
		var st savedState
		_ = json.Unmarshal(rec.State, &st) // it was read before
		x := newCell(own, cc, Request{Timeout: st.Timeout}, &Sink{})
		x.event = ev
		if rec.Name != "" && ev != nil {
			x.collect, x.ids.CellID = true, ev.ProcessID
			cc.remember(x)
		}
		cc.acquireAtAll() // it is new, and free
		s.engine.Go(x.resume)
	}
	return nil
}

// resume is the life of a cell that an earlier server began.
func (x *cell) resume(ctx context.Context) {
	defer close(x.done)
	k := x.cc.currentKernel()
	if k == nil { // it ended in this moment
		x.forget(ctx, "its kernel ended when the server did")
		return
	}
	x.kernel = k
	if err := x.rehost(ctx); err != nil {
		x.leave(ctx)
		return
	}
	c := kernel.Cell{Slept: x.u.Slept}
	if x.r.Timeout > 0 && x.event != nil {
		c.Timeout = max(x.r.Timeout-x.s.engine.Now().Sub(x.event.At), time.Millisecond)
	}
	res, err := k.session.Wait(ctx, c, x.handler(ctx))
	res, err = x.endAtTimeout(ctx, k, res, err)
	x.gap = k.process.Gaps() > 0
	switch {
	case ctx.Err() != nil:
		x.leave(ctx)
	case x.event == nil || fault.Is(err, fault.State) && !x.begun:
		if k.session.Status() == kernel.Dead {
			x.cc.setEnded(k, "its kernel ended when the server did")
		}
		x.forget(ctx, "the server ended before it was sent")
	default:
		res.Duration = max(x.s.engine.Now().Sub(x.event.At), 0)
		x.setResult(ctx, k, res, err)
		x.conclude(ctx)
	}
}

// forget ends a cell of an earlier server that never ran, or is on no record.
func (x *cell) forget(ctx context.Context, why string) {
	if x.event != nil {
		x.notBegun(ctx, fault.New(fault.State, "%s", why))
		return
	}
	k := x.cc.currentKernel()
	x.cc.change(func(rec *sandbox.Context) {
		rec.RunningID = ""
		if k != nil {
			rec.State = savedState{Kernel: k.session.State()}.bytes()
		}
	})
	x.cc.save(ctx)
	x.cc.release()
	x.u.End()
}
