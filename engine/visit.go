// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Visit is a look at a sandbox that need not be up. It keeps the sandbox from idling by Touch
// alone.
type Visit struct {
	e   *Engine
	b   *entry
	ref string
	who core.Actor
}

// Look visits a sandbox without using it: nothing is run in it. The caller ends the visit with Leave.
func (e *Engine) Look(ctx context.Context, c access.Caller, scope access.Scope, ref string) (*Visit, error) {
	b, err := e.visit(ctx, c, scope, ref)
	if err != nil {
		return nil, err
	}
	return &Visit{e, b, ref, core.ActorOf(c)}, nil
}

// Visit is Look after what an earlier server left running in the sandbox was adopted.
func (e *Engine) Visit(ctx context.Context, c access.Caller, scope access.Scope, ref string) (*Visit, error) {
	v, err := e.Look(ctx, c, scope, ref)
	if err != nil {
		return nil, err
	}
	if err := e.heard(ctx, v.b); err != nil {
		v.Leave()
		return nil, err
	}
	return v, nil
}

// Rest ends a use as one that keeps the sandbox from idling. It goes on as the visit, which is left
// in place of End.
func (u *Use) Rest() *Visit {
	u.b.unhold(u.e.now(), u.what)
	return &Visit{u.e, u.b, string(u.b.id), u.who}
}

// Leave ends the visit. It is called once.
func (v *Visit) Leave() { v.e.leave(v.b) }

// Sandbox returns the id of the sandbox.
func (v *Visit) Sandbox() sandbox.ID { return v.b.id }

// Attached is Use.Attached.
func (v *Visit) Attached(open func(sandbox.ID) any) any { return v.b.attachedBy(open) }

// Touch counts as a use of the sandbox that is over at once. what is the use in a word for people.
func (v *Visit) Touch(what string) { v.b.touch(v.e.now(), what) }

// NewEvent returns an event by the visitor, for Record. A sandbox that was deleted meanwhile is
// fault.NotFound.
func (v *Visit) NewEvent(t sandbox.EventType) (*sandbox.Event, error) {
	s := v.b.record.Load()
	if s == nil {
		return nil, core.NoSandbox(v.ref)
	}
	return v.who.Event(t, s, v.e.now()), nil
}

// Record commits an event, with the time of the last use.
func (v *Visit) Record(ctx context.Context, ev *sandbox.Event) error {
	return v.e.commit(ctx, v.b, func(*sandbox.Sandbox) {}, ev)
}

// Change commits a change of the sandbox's record, which gets a copy of it and replaces what it points to, with its
// event, and with what more does, which may be nil.
func (v *Visit) Change(ctx context.Context, change func(*sandbox.Sandbox), more func(store.Tx) error, ev *sandbox.Event) error {
	return v.e.commitWith(ctx, v.b, change, func(tx store.Tx) error {
		if more != nil {
			if err := more(tx); err != nil {
				return err
			}
		}
		return tx.Events().Append(ev)
	}, ev)
}

// RecordFirst commits an event unless there is one of its type and ProcessID.
func (v *Visit) RecordFirst(ctx context.Context, ev *sandbox.Event) error {
	first := false
	err := v.e.core.Store.Update(ctx, func(tx store.Tx) error {
		page, _, err := tx.Events().List(store.EventQuery{
			Project: ev.Project, Sandbox: ev.Sandbox, ProcessID: ev.ProcessID, Types: []sandbox.EventType{ev.Type}, Limit: 1,
		})
		if first = err == nil && len(page) == 0; !first {
			return err
		}
		return tx.Events().Append(ev)
	})
	if err == nil && first {
		v.e.core.Metrics.Happened([]*sandbox.Event{ev})
	}
	return err
}
