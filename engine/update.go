// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/update"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Update changes a sandbox's record, and its instance where that is up. A limit that
// its runtime cannot change while it is up is fault.State, and a memory limit under
// what is in use fault.Conflict. All or nothing.
func (e *Engine) Update(ctx context.Context, c access.Caller, ref string, p update.Patch) (*sandbox.Sandbox, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	set := e.settings.Load()
	if err := p.Check(e.now(), set.Limits, set.Most); err != nil {
		return nil, err
	}
	if err := set.Admit(p.Variables()); err != nil {
		return nil, err
	}
	if p.Key != nil { // nobody creates a sandbox by it meanwhile
		give, err := e.awaitKey(ctx, name{c.Project, *p.Key})
		if err != nil {
			return nil, err
		}
		defer give()
	}
	return e.verb(ctx, c, ref, updateBound, e.takeToWork, func(ctx context.Context, b held) error {
		return e.update(ctx, b, core.ActorOf(c), p)
	})
}

// update has no intent: what an instance was given and the record does not say, after
// a crash or a commit that failed, is taken back by making it fit the record.
func (e *Engine) update(ctx context.Context, b held, who core.Actor, p update.Patch) error {
	s := b.record.Load()
	p, err := p.On(s)
	if err == nil {
		err = e.patchMounts(ctx, s, &p)
	}
	if err != nil {
		return err
	}
	if p.Network != nil {
		rules := e.settings.Load().Network
		n, err := rules.Check(p.Network)
		if err == nil {
			n, err = rules.Resolve(n, imageOf(func() (image.Image, error) { return e.imageKept(s.Image, s.ImageDigest) }))
		}
		if err == nil && p.Bound != nil {
			err = p.Bound.Within(e.InForce(s.Network), n)
		}
		if err != nil {
			return err
		}
		p.Network = &n
	}
	names := p.Fields(s)
	if len(names) == 0 {
		return nil
	}
	if err := e.secrets.Refuse(ctx, s.Project, s.ID, p.Plain()); err != nil {
		return err
	}
	if err := e.mayChange(ctx, s, p); err != nil {
		return err
	}
	l, limits := b.standing(), p.Limits(s.Limits)
	if l != nil && limits != s.Limits {
		if err := e.resize(ctx, b, l, limits); err != nil {
			return err
		}
		e.core.Checkpoint("update.done")
	}
	// What cannot be kept of it is taken back: the record says what is in force.
	undo := func() {
		actx, cancel := core.Aside(ctx)
		defer cancel()
		if p.Network != nil && l != nil {
			e.reopenNetwork(actx, b, l)
		}
		if l != nil && limits != s.Limits {
			e.fit(actx, b, l)
			l.unfit = true // which of the two the store has is seen later
			e.later(b.entry)
		}
	}
	if p.Network != nil && l != nil {
		if err := e.openNetwork(ctx, b, l, *p.Network); err != nil {
			undo()
			return err
		}
	}
	at := e.now()
	ev := who.Event(sandbox.EventUpdated, s, at)
	ev.Detail = "changed " + strings.Join(names, ", ") // names only: values may be secrets
	if p.Key != nil && *p.Key != s.Key {
		ev.Detail = sandbox.Clip(ev.Detail+"; the key was "+strconv.Quote(s.Key)+" and is "+strconv.Quote(*p.Key), sandbox.MaxEventDetail)
	}
	if p.Network != nil {
		ev.Detail = sandbox.Clip(ev.Detail+withPresets(*p.Network), sandbox.MaxEventDetail)
	}
	err = e.commitWith(ctx, b.entry, func(s *sandbox.Sandbox) { p.Apply(s, at) }, func(tx store.Tx) error {
		if p.Volumes != nil {
			if err := volume.Mountable(tx, s.Project, *p.Volumes); err != nil {
				return err
			}
		}
		return tx.Events().Append(ev)
	}, ev)
	if err != nil {
		undo()
		if p.Key != nil && fault.Is(err, fault.Exists) {
			err = fault.As(err).WithRemedy("choose another key, or rename or delete the sandbox that has it")
		}
		return err
	}
	e.core.Checkpoint("update.outcome")
	if l != nil && p.Key != nil {
		if err := l.setHostname(ctx, b.record.Load()); err != nil { // the record counts, and what is up follows it
			e.core.Log.Warn("the host name of a sandbox cannot be set now; it is tried again", "sandbox", b.id, "error", err)
			l.unfit = true
			e.later(b.entry)
		}
	}
	if l != nil && p.Sudo != nil && !l.pauses.Paused() { // a resume tells the others
		if err := e.tellSudo(ctx, b.entry, l); err != nil { // the record counts, and what is up follows it
			e.later(b.entry)
			if !*p.Sudo {
				return fault.Wrap(fault.Unavailable, err, "sudo is off on the record of the sandbox %s, and its process 1 has not heard of it yet: its user may use it until it has", b.record.Load().Ref()).
					WithRemedy("it is tried again; stop the sandbox if that is too long")
			}
			e.core.Log.Warn("the agent of a sandbox cannot be told of its sudo; it is tried again", "sandbox", b.id, "error", err)
		}
	}
	if l != nil && p.Env != nil {
		l.setEnv(*p.Env, b.record.Load())
	}
	e.plan(b.entry)
	return nil
}

// mayChange refuses what would have no effect, or one that nobody expects.
func (e *Engine) mayChange(ctx context.Context, s *sandbox.Sandbox, p update.Patch) error {
	if p.AutoDelete != nil && *p.AutoDelete && s.State.Down() {
		return fault.New(fault.State, "auto_delete: the sandbox %s is %s already, and would be deleted at once", s.Ref(), s.State).
			WithRemedy("start it first (start %s), or delete it", s.Ref())
	}
	return cmp.Or(e.mayPause(ctx, s.Runtime, p.OnIdle, p.OnExpiry), e.maySudo(ctx, s.Runtime, p.Sudo), e.core.MayChangeDisk(ctx, s, p.DiskMB))
}

// mayPause refuses clocks that pause sandboxes of a runtime that cannot.
func (e *Engine) mayPause(ctx context.Context, runtimeName string, a *sandbox.IdleAction, x *sandbox.ExpiryAction) error {
	if (a == nil || *a != sandbox.IdlePause) && (x == nil || *x != sandbox.ExpiryPause) {
		return nil
	}
	caps, err := e.capabilities(ctx, runtimeName)
	if err != nil {
		return err
	}
	if why, known := caps[runtime.Pause]; why != nil || !known {
		return e.cannot(ctx, runtimeName, runtime.Pause, "pause a sandbox")
	}
	return nil
}

// resize returns an instance that is up other limits than its record has.
func (e *Engine) resize(ctx context.Context, b held, l *session, limits sandbox.Limits) error {
	why := "its runtime does not"
	if r, ok := l.inst.(runtime.Resizer); ok {
		err := r.Resize(ctx, limits)
		switch fault.Of(err) {
		case "", fault.Conflict:
			return err
		case fault.Unsupported:
			why = core.Reason(err)
		default: // a part may have been changed
			l.unfit = true
			e.later(b.entry)
			return err
		}
	}
	s := b.record.Load()
	return fault.New(fault.State, "the limits of the sandbox %s, which is %s, can change only while it is stopped (%s)", s.Ref(), s.State, why).
		WithRemedy("stop it (stop %s), change them, and start it again", s.Ref())
}

// patchMounts finds out what a patch makes of a sandbox's mounts.
func (e *Engine) patchMounts(ctx context.Context, s *sandbox.Sandbox, p *update.Patch) error {
	if p.Mounts == nil {
		return nil
	}
	mounts, err := e.volumes.Mounts(ctx, s.Project, s.Runtime, *p.Mounts)
	if err != nil || slices.Equal(mounts, s.Mounts) {
		return err
	}
	if s.State != sandbox.Stopped {
		return fault.New(fault.State, "mounts can change only while the sandbox is stopped; %s is %s", s.Ref(), s.State).
			WithRemedy("stop it (stop %s), change them, and start it again", s.Ref())
	}
	p.Volumes = &mounts
	return nil
}
