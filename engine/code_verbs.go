// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// ContextRequest is a context that is to be made.
type ContextRequest struct {
	Language string
	Cwd      string // relative to the workspace; empty: the workspace, or root's home
	User     string // "sandbox" or "root"; empty: sandbox
	Env      map[string]string
}

// ContextStatus says what a context does.
type ContextStatus string

// The statuses.
const (
	ContextIdle  ContextStatus = "idle"
	ContextBusy  ContextStatus = "busy"  // a cell runs, or its kernel starts
	ContextEnded ContextStatus = "ended" // its variables are gone; its next cell starts a kernel
)

// Context is a context as it is now.
type Context struct {
	sandbox.Context // without State
	Status          ContextStatus
	Queued          int // cells that wait for their turn
}

// info is the context for callers.
func (cc *codeContext) info() Context {
	queued := int(cc.waiting.Load())
	cc.mu.Lock()
	defer cc.mu.Unlock()
	c := Context{Context: cc.rec, Status: ContextIdle, Queued: queued}
	c.State = nil
	switch {
	case cc.starting:
		c.Status = ContextBusy
	case cc.kernel == nil || cc.kernel.session.Status() == kernel.Dead:
		c.Status = ContextEnded
	case cc.rec.RunningID != "" || cc.kernel.session.Status() == kernel.Busy:
		c.Status = ContextBusy
	}
	if c.Status == ContextEnded {
		c.Ended, c.RunningID = orText(c.Ended, "its kernel ended"), ""
	}
	return c
}

// CreateContext makes a context, with its kernel. More than MaxContexts are
// fault.Exhausted, an image without the language is fault.Unsupported.
func (e *Engine) CreateContext(ctx context.Context, c access.Caller, ref string, r ContextRequest) (Context, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return Context{}, err
	}
	var k check
	want, err := e.wantContext(&k, r)
	if err != nil {
		return Context{}, err
	}
	if r.Language == "" {
		k.bad("language", "is missing")
	}
	if err := k.err(); err != nil {
		return Context{}, err
	}
	return e.makeContext(ctx, c, ref, want, actCode)
}

// makeContext makes a context, or a shell if it has a name, with its kernel.
func (e *Engine) makeContext(ctx context.Context, c access.Caller, ref string, want sandbox.Context, what string) (Context, error) {
	u, err := e.use(ctx, c, access.SandboxesWrite, ref, what)
	if err != nil {
		return Context{}, err
	}
	defer u.end()
	if err := e.loadContexts(ctx, u.b); err != nil {
		return Context{}, err
	}
	if err := e.refuseInContext(ctx, u.b, &want); err != nil {
		return Context{}, err
	}
	cc, err := u.b.newContext(want)
	if err != nil {
		return Context{}, err
	}
	return e.bringUp(ctx, u, cc, nil)
}

// newContext adds a context, or a shell whose name is not taken.
func (b *box) newContext(want sandbox.Context) (*codeContext, error) {
	b.contexts.mu.Lock()
	defer b.contexts.mu.Unlock()
	if want.Name != "" && b.shellLocked(want.Name) != nil {
		return nil, fault.New(fault.Exists, "the sandbox has a shell named %s", want.Name).
			WithRemedy("run commands in it, or choose another name")
	}
	return b.addContext(want, false)
}

// RestartContext ends a context's kernel, with all that it started and the cell that runs, and starts
// another.
func (e *Engine) RestartContext(ctx context.Context, c access.Caller, ref, id string) (Context, error) {
	u, err := e.use(ctx, c, access.SandboxesWrite, ref, actCode)
	if err != nil {
		return Context{}, err
	}
	defer u.end()
	cc, err := e.findContext(ctx, u.b, id)
	if err != nil {
		return Context{}, err
	}
	old := cc.liveKernel()
	if old != nil {
		if err := e.killKernel(ctx, u.l, old.process); err != nil {
			return Context{}, u.fail(ctx, err)
		}
	}
	return e.bringUp(ctx, u, cc, old)
}

// bringUp gives a context a kernel, unless it has another than old already. The
// caller's going away does not stop it.
func (e *Engine) bringUp(ctx context.Context, u *use, cc *codeContext, old *codeKernel) (Context, error) {
	work := &use{u.e, u.b, u.l, u.who, actCode}
	if err := e.group.enter(); err != nil {
		return Context{}, err
	}
	e.retain(u.b)
	u.b.occupy()
	err := e.work(ctx, createBound, func(ctx context.Context) error {
		defer work.end()
		ok, err := cc.take(ctx, e.group)
		if err != nil {
			return err
		}
		if !ok {
			return noContext(cc.record().ID)
		}
		defer cc.turn.give()
		defer e.endOrphan(u.b, cc) // it may have been deleted meanwhile
		if old != nil {
			cc.over(old, "it was restarted")
		}
		if _, _, err := e.haveKernel(ctx, work, cc); err != nil {
			cc.unsaved()
			return err
		}
		if err := e.store.Update(ctx, cc.put); err != nil {
			cc.unsaved()
			return err
		}
		cc.wasPut()
		return nil
	}, nil)
	if err != nil {
		return Context{}, err
	}
	return cc.info(), nil
}

// findContext finds a context of a box by its id.
func (e *Engine) findContext(ctx context.Context, b *box, id string) (*codeContext, error) {
	if err := e.loadContexts(ctx, b); err != nil {
		return nil, err
	}
	b.contexts.mu.Lock()
	defer b.contexts.mu.Unlock()
	for _, cc := range b.contexts.all {
		if cc.record().ID == id {
			return cc, nil
		}
	}
	return nil, noContext(id)
}

// Contexts gives a sandbox's contexts, oldest first; of one that is down, too.
func (e *Engine) Contexts(ctx context.Context, c access.Caller, ref string) ([]Context, error) {
	out := []Context{}
	err := e.withContexts(ctx, c, access.SandboxesRead, ref, func(b *box) error {
		for _, cc := range b.contexts.all {
			if one := cc.info(); one.Name == "" { // the others are shells
				out = append(out, one)
			}
		}
		return nil
	})
	return out, err
}

// Context gives one.
func (e *Engine) Context(ctx context.Context, c access.Caller, ref, id string) (Context, error) {
	all, err := e.Contexts(ctx, c, ref)
	if err != nil {
		return Context{}, err
	}
	for _, one := range all {
		if one.ID == id {
			return one, nil
		}
	}
	return Context{}, noContext(id)
}

// InterruptContext interrupts the cell that runs in a context; its variables stay, and cells that wait
// go on. Without one it is fault.State.
func (e *Engine) InterruptContext(ctx context.Context, c access.Caller, ref, id string) error {
	u, err := e.peek(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return err
	}
	defer u.end()
	cc, err := e.findContext(ctx, u.b, id)
	if err != nil {
		return err
	}
	k := cc.liveKernel()
	if k == nil {
		return fault.New(fault.State, "no cell is running in the context %s", id)
	}
	if err := k.session.Interrupt(ctx); err != nil {
		return u.fail(ctx, err)
	}
	return nil
}

// DeleteContext ends a context and all that its kernel has started, the cell that runs
// included. Cells that wait for it get fault.NotFound.
func (e *Engine) DeleteContext(ctx context.Context, c access.Caller, ref, id string) error {
	b, err := e.visit(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return err
	}
	defer e.leave(b)
	if err := e.heard(ctx, b); err != nil {
		return err
	}
	cc, err := e.findContext(ctx, b, id)
	if err != nil {
		return err
	}
	cc.drop()
	err = e.store.Update(ctx, func(tx store.Tx) error {
		err := tx.Contexts().Delete(b.id, id)
		if fault.Is(err, fault.NotFound) {
			err = nil // it was not written yet, and will not be
		}
		return err
	})
	k := cc.liveKernel()
	if err != nil || k == nil || b.standing() != k.l {
		return err
	}
	return e.killKernel(ctx, k.l, k.process)
}
