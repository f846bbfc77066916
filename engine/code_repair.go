// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// adoptCode goes on with the kernels of an earlier server that still run, and with the cells in
// them. Of the rows it leaves those that are not of code, and those of kernels that are no
// more; the kernels of single cells, and those that no context knows, it ends. The caller has
// the turn, and holds the sandbox.
func (e *Engine) adoptCode(ctx context.Context, b *box, l *live, rows []*sandbox.Event) ([]*sandbox.Event, error) {
	var rest []*sandbox.Event
	var cells []*sandbox.Event
	for _, ev := range rows {
		switch {
		case ev.Type == sandbox.EventCode, ev.Type == sandbox.EventExec && ev.ContextID != "":
			cells = append(cells, ev)
			continue
		case ev.Type == sandbox.EventContext:
			adopted, err := e.adoptKernel(ctx, b, l, ev)
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
	if err := e.loadContexts(ctx, b); err != nil {
		return nil, err
	}
	for _, ev := range cells {
		if e.followed(b, ev) {
			continue
		}
		cutOff(ev, sandbox.CauseHost, "the server ended while it ran, and its kernel is no more", e.now())
		err := e.commitWith(ctx, b, func(*sandbox.Sandbox) {}, func(tx store.Tx) error { return tx.Events().Finish(ev) })
		if err != nil {
			return nil, err
		}
	}
	return rest, e.followCells(b, l, cells)
}

// adoptKernel goes on with one kernel, if its context is known and it runs.
func (e *Engine) adoptKernel(ctx context.Context, b *box, l *live, ev *sandbox.Event) (bool, error) {
	recs, err := e.peekContexts(ctx, b)
	if err != nil {
		return false, err
	}
	var cc *codeContext
	for _, one := range recs {
		if rec := one.record(); rec.ProcessID == ev.ProcessID {
			cc = one
		}
	}
	rec, err := l.client.Process(ctx, ev.ProcessID)
	if errors.Is(err, agent.ErrSilent) {
		return false, err
	}
	if err != nil || rec.Result != nil {
		if err == nil && cc != nil {
			cc.change(func(c *sandbox.Context) { c.Ended = "its kernel ended: " + exitOf(*rec.Result).String() })
		}
		return false, nil
	}
	k, own, why := (*codeKernel)(nil), (*use)(nil), "its context is not known"
	if cc != nil {
		if own, err = e.adoptUse(b, l, ev); err != nil {
			return false, err
		}
		open, err := e.secrets.Of(ctx, b.project, b.id)
		if err != nil { // what its cells say could not be kept clean of them
			why = reason(err)
		} else if k, why = resume(own, ev, cc.record()); k != nil {
			k.session.Redact(open.Values)
		}
	}
	if k == nil {
		if own != nil {
			own.end()
		}
		e.log.Warn("a kernel of the last run is ended", "sandbox", b.id, "process", ev.ProcessID, "reason", why)
		if err := e.killKernel(ctx, l, ev.ProcessID); err != nil {
			e.log.Warn("a kernel of the last run cannot be ended", "sandbox", b.id, "process", ev.ProcessID, "error", err)
		}
		if cc != nil {
			cc.change(func(c *sandbox.Context) { c.Ended = why })
		}
		return false, nil
	}
	cc.mu.Lock()
	cc.kernel, cc.rec.Ended = k, ""
	cc.mu.Unlock()
	e.watchKernel(own, ev, cc, k)
	return true, nil
}

// peekContexts gives the contexts of a box, read if they were not yet.
func (e *Engine) peekContexts(ctx context.Context, b *box) ([]*codeContext, error) {
	if err := e.loadContexts(ctx, b); err != nil {
		return nil, err
	}
	b.contexts.mu.Lock()
	defer b.contexts.mu.Unlock()
	return slices.Clone(b.contexts.all), nil
}

// resume makes a kernel of what its record kept, or tells why that cannot be.
func resume(own *use, ev *sandbox.Event, rec sandbox.Context) (*codeKernel, string) {
	var st savedState
	if err := json.Unmarshal(rec.State, &st); err != nil {
		return nil, "what was kept of it cannot be read"
	}
	k := &codeKernel{carrier: newCarrier(own, ev, nil, st.Kernel.Cursor), l: own.l, process: ev.ProcessID}
	var err error
	if k.session, err = kernel.Resume(st.Kernel, k.carrier); err != nil {
		return nil, reason(err)
	}
	return k, ""
}

// followed tells whether a cell runs in a kernel that was adopted.
func (e *Engine) followed(b *box, ev *sandbox.Event) bool {
	cc := b.contextByCell(ev.ProcessID)
	return cc != nil && cc.liveKernel() != nil
}

func (b *box) contextByCell(id string) *codeContext {
	b.contexts.mu.Lock()
	defer b.contexts.mu.Unlock()
	for _, cc := range b.contexts.all {
		if cc.record().RunningID == id {
			return cc
		}
	}
	return nil
}

// followCells follows the cells that the kernels were at, on record or not.
func (e *Engine) followCells(b *box, l *live, cells []*sandbox.Event) error {
	b.contexts.mu.Lock()
	all := slices.Clone(b.contexts.all)
	b.contexts.mu.Unlock()
	for _, cc := range all {
		k := cc.liveKernel()
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
		u, err := e.adoptUse(b, l, &sandbox.Event{Actor: system.actor, Via: system.via})
		if err != nil {
			return err
		}
		var st savedState
		_ = json.Unmarshal(rec.State, &st) // it was read before
		x := newCell(u, cc, CodeRequest{Timeout: st.Timeout}, &CodeSink{})
		x.event = ev
		if rec.Name != "" && ev != nil {
			x.collect, x.ids.CellID = true, ev.ProcessID
			cc.remember(x)
		}
		_ = cc.turn.take(context.WithoutCancel(e.group.ctx)) // it is new, and nobody's
		e.group.spawn(x.goOn)
	}
	return nil
}

// goOn is the life of a cell that an earlier server began.
func (x *cell) goOn(ctx context.Context) {
	defer close(x.done)
	k := x.cc.liveKernel()
	if k == nil { // it ended in this moment
		x.forget(ctx, "its kernel ended when the server did")
		return
	}
	x.kernel = k
	c := kernel.Cell{Slept: x.u.l.nap.total}
	if x.r.Timeout > 0 && x.event != nil {
		c.Timeout = max(x.r.Timeout-x.u.e.now().Sub(x.event.At), time.Millisecond)
	}
	res, err := k.session.Wait(ctx, c, x.handler(ctx))
	res, err = x.spare(ctx, k, res, err)
	x.gap = k.carrier.gaps > 0
	switch {
	case ctx.Err() != nil:
		x.leave(ctx)
	case x.event == nil || fault.Is(err, fault.State) && !x.begun:
		if k.session.Status() == kernel.Dead {
			x.cc.over(k, "its kernel ended when the server did")
		}
		x.forget(ctx, "the server ended before it was sent")
	default:
		res.Duration = max(x.u.e.now().Sub(x.event.At), 0)
		x.settle(ctx, k, res, err)
		x.conclude(ctx)
	}
}

// forget ends a cell of an earlier server that never ran, or is on no record.
func (x *cell) forget(ctx context.Context, why string) {
	if x.event != nil {
		x.notBegun(ctx, fault.New(fault.State, "%s", why))
		return
	}
	k := x.cc.liveKernel()
	x.cc.change(func(rec *sandbox.Context) {
		rec.RunningID = ""
		if k != nil {
			rec.State = savedState{Kernel: k.session.State()}.bytes()
		}
	})
	x.u.e.saveContext(ctx, x.cc)
	x.cc.turn.give()
	x.u.end()
}
