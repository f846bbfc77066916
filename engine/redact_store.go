// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// hushStore is the engine's store, where no event is written with the value of a secret in
// it: not by any verb, and none has to think of it.
type hushStore struct {
	store.Store
	e *Engine
}

func (s hushStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, func(tx store.Tx) error { return fn(hushTx{tx, s.e}) })
}

type hushTx struct {
	store.Tx
	e *Engine
}

func (tx hushTx) Events() store.Events { return hushEvents{tx.Tx.Events(), tx} }

type hushEvents struct {
	store.Events
	tx hushTx
}

func (h hushEvents) Append(ev *sandbox.Event) error {
	if err := h.hush(ev); err != nil {
		return err
	}
	return h.Events.Append(ev)
}

func (h hushEvents) Finish(ev *sandbox.Event) error {
	if err := h.hush(ev); err != nil {
		return err
	}
	return h.Events.Finish(ev)
}

// hush takes the values out of an event: those that its sandbox's secrets have in memory,
// or else as the transaction sees them. One that does not open is in nobody's memory.
func (h hushEvents) hush(ev *sandbox.Event) error {
	e := h.tx.e
	if r := e.keptRedactor(ev.Project, ev.Sandbox); r != nil {
		r.event(ev)
		return nil
	}
	owners := []sandbox.ID{"", ev.Sandbox}
	if ev.Sandbox == "" {
		owners = owners[:1]
	}
	var all []openSecret
	for _, owner := range owners {
		sealed, err := h.tx.Secrets().List(ev.Project, owner)
		if err != nil {
			return err
		}
		for _, s := range sealed {
			if o, err := e.unseal(s); err == nil {
				all = append(all, o)
			}
		}
	}
	e.logHush.hide(all)
	newRedactor(all).event(ev)
	return nil
}

// keptRedactor is the redactor of a sandbox, or of a project itself, whose secrets are in
// memory as they are; else nil.
func (e *Engine) keptRedactor(project string, id sandbox.ID) *redactor {
	p := e.shelves.project(project).now.Load()
	if p == nil {
		return nil
	}
	if id == "" {
		return p.redact
	}
	e.mu.Lock()
	b := e.boxes[id]
	e.mu.Unlock()
	if b == nil {
		return nil
	}
	set, own := b.secretSet.Load(), b.secrets.now.Load()
	switch {
	case own == nil:
		return nil
	case set == nil || set.project != p || set.own != own:
		set = newSecretSet(p, own)
		b.secretSet.Store(set)
	}
	return set.redact
}

// redactorOf is that of a sandbox, for what is told of it and not written. Where its secrets
// do not open, nobody has them.
func (e *Engine) redactorOf(ctx context.Context, project string, id sandbox.ID) *redactor {
	set, err := e.secretSet(ctx, project, id)
	if err != nil {
		return &redactor{}
	}
	return set.redact
}
