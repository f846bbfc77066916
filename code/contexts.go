// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
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
func (s *Service) CreateContext(ctx context.Context, c access.Caller, ref string, r ContextRequest) (Context, error) {
	c = c.Inside()
	if err := c.Require(access.SandboxesWrite); err != nil {
		return Context{}, err
	}
	var k check.Fields
	want, _, err := s.checkContext(&k, r, 0)
	if err != nil {
		return Context{}, err
	}
	if r.Language == "" {
		k.Bad("language", "is missing")
	}
	if err := k.Err(); err != nil {
		return Context{}, err
	}
	return s.makeContext(ctx, c, ref, want, useCode)
}

// makeContext makes a context, or a shell if it has a name, with its kernel.
func (s *Service) makeContext(ctx context.Context, c access.Caller, ref string, want sandbox.Context, what string) (Context, error) {
	c = c.Inside()
	u, err := s.engine.Use(ctx, c, access.SandboxesWrite, ref, what)
	if err != nil {
		return Context{}, err
	}
	defer u.End()
	all, err := s.loadFor(ctx, u, &want)
	if err != nil {
		return Context{}, err
	}
	cc, err := all.add(want)
	if err != nil {
		return Context{}, err
	}
	return s.bringUp(ctx, u, cc, nil)
}

// add adds a context, or a shell whose name is not taken.
func (all *contexts) add(want sandbox.Context) (*codeContext, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if want.Name != "" && all.shellLocked(want.Name) != nil {
		return nil, fault.New(fault.Exists, "the sandbox has a shell named %q", want.Name).
			WithRemedy("run commands in it, or choose another name")
	}
	return all.addLocked(want, false)
}

// RestartContext ends a context's kernel, with all that it started and the cell that runs, and starts
// another.
func (s *Service) RestartContext(ctx context.Context, c access.Caller, ref, id string) (Context, error) {
	c = c.Inside()
	u, err := s.engine.Use(ctx, c, access.SandboxesWrite, ref, useCode)
	if err != nil {
		return Context{}, err
	}
	defer u.End()
	cc, err := s.findContext(ctx, u, id)
	if err != nil {
		return Context{}, err
	}
	old := cc.currentKernel()
	if old != nil {
		u.Ending(ctx, id)
		if err := u.Kill(ctx, old.process.ID()); err != nil {
			return Context{}, u.Fail(ctx, err)
		}
	}
	return s.bringUp(ctx, u, cc, old)
}

// bringUp starts a kernel of a context, unless it has another than old already. The
// caller's going away does not stop it.
func (s *Service) bringUp(ctx context.Context, u *engine.Use, cc *codeContext, old *codeKernel) (Context, error) {
	err := u.Work(ctx, useCode, func(ctx context.Context, own *engine.Use) error {
		ok, err := cc.acquire(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return noContext(cc.record().ID)
		}
		defer cc.release()
		defer cc.killOrphan() // it may have been deleted meanwhile
		if old != nil {
			cc.setEnded(old, "it was restarted")
		}
		fresh := !cc.isSaved()
		k, _, err := cc.haveKernel(ctx, own, cc.put)
		if err == nil {
			err = cc.keep(ctx, k)
		}
		if err != nil && fresh {
			cc.discard(ctx)
		}
		return err
	})
	if err != nil {
		return Context{}, err
	}
	return cc.info(), nil
}

// keep commits where a kernel is that nothing has run in yet, so that the next server goes on with it. The caller has the lock.
func (cc *codeContext) keep(ctx context.Context, k *codeKernel) error {
	cc.change(func(rec *sandbox.Context) { rec.State = savedState{Kernel: k.session.State()}.bytes() })
	ctx, cancel := detached(ctx)
	defer cancel()
	return cc.in.s.store.Update(ctx, cc.put)
}

// findContext finds a context of a sandbox by its id.
func (s *Service) findContext(ctx context.Context, a attached, id string) (*codeContext, error) {
	all, err := s.load(ctx, a)
	if err != nil {
		return nil, err
	}
	if cc := all.find(func(cc *codeContext) bool { return cc.record().ID == id }); cc != nil {
		return cc, nil
	}
	return nil, noContext(id)
}

// visit returns the contexts of a sandbox, up or not. leave ends the visit.
func (s *Service) visit(ctx context.Context, c access.Caller, scope access.Scope, ref string) (all *contexts, leave func(), err error) {
	c = c.Inside()
	v, err := s.engine.Visit(ctx, c, scope, ref)
	if err != nil {
		return nil, nil, err
	}
	if all, err = s.load(ctx, v); err != nil {
		v.Leave()
		return nil, nil, err
	}
	return all, v.Leave, nil
}

// Contexts returns a sandbox's contexts, oldest first; of one that is down, too.
func (s *Service) Contexts(ctx context.Context, c access.Caller, ref string) ([]Context, error) {
	all, leave, err := s.visit(ctx, c, access.SandboxesRead, ref)
	if err != nil {
		return []Context{}, err
	}
	defer leave()
	out := []Context{}
	for _, cc := range all.list() {
		if one := cc.info(); one.Name == "" { // the others are shells
			out = append(out, one)
		}
	}
	return out, nil
}

// Context returns one.
func (s *Service) Context(ctx context.Context, c access.Caller, ref, id string) (Context, error) {
	all, err := s.Contexts(ctx, c, ref)
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
func (s *Service) InterruptContext(ctx context.Context, c access.Caller, ref, id string) error {
	c = c.Inside()
	u, err := s.engine.Peek(ctx, c, ref)
	if err != nil {
		return err
	}
	defer u.End()
	cc, err := s.findContext(ctx, u, id)
	if err != nil {
		return err
	}
	k := cc.currentKernel()
	if k == nil {
		return fault.New(fault.State, "no cell is running in the context %s", id)
	}
	if err := k.session.Interrupt(ctx); err != nil {
		return u.Fail(ctx, err)
	}
	return nil
}

// DeleteContext ends a context and all that its kernel has started, the cell that runs
// included. Cells that wait for it get fault.NotFound, and queued commands are on record as
// ones that never began.
func (s *Service) DeleteContext(ctx context.Context, c access.Caller, ref, id string) error {
	c = c.Inside()
	v, err := s.engine.Visit(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return err
	}
	defer v.Leave()
	cc, err := s.findContext(ctx, v, id)
	if err != nil {
		return err
	}
	v.Ending(ctx, id)
	cc.drop()
	err = s.remove(ctx, cc) // one that was not written yet will not be
	if k := cc.currentKernel(); err == nil && k != nil && k.process.Up() {
		err = k.process.Kill(ctx)
	}
	if err != nil {
		return err
	}
	return cc.awaitQueued(ctx)
}
