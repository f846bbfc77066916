// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"slices"

	"sandpit.dev/redact"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Store returns the cache's store, where no event is written with a value in it: not by any
// verb, and none has to think of it.
func (c *Cache) Store() store.Store { return redactedStore{c.store, c} }

type redactedStore struct {
	store.Store
	cache *Cache
}

func (s redactedStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, func(tx store.Tx) error { return fn(redactedTx{tx, s.cache}) })
}

type redactedTx struct {
	store.Tx
	cache *Cache
}

func (tx redactedTx) Events() store.Events { return redactedEvents{tx.Tx.Events(), tx} }

type redactedEvents struct {
	store.Events
	tx redactedTx
}

func (e redactedEvents) Append(ev *sandbox.Event) error {
	if err := e.redact(ev); err != nil {
		return err
	}
	return e.Events.Append(ev)
}

func (e redactedEvents) Finish(ev *sandbox.Event) error {
	if err := e.redact(ev); err != nil {
		return err
	}
	return e.Events.Finish(ev)
}

// redact takes the values out of an event: those that its sandbox's secrets have in memory,
// or else as the transaction sees them. One that does not open is in no memory.
func (e redactedEvents) redact(ev *sandbox.Event) error {
	c := e.tx.cache
	if l := c.kept(ev.Project, ev.Sandbox); l != nil {
		redactEvent(l, ev)
		return nil
	}
	owners := []sandbox.ID{"", ev.Sandbox}
	if ev.Sandbox == "" {
		owners = owners[:1]
	}
	var all []Secret
	for _, owner := range owners {
		sealed, err := e.tx.Secrets().List(ev.Project, owner)
		if err != nil {
			return err
		}
		for _, s := range sealed {
			if o, err := open(c.ring, &s.Secret, s.Sealed); err == nil {
				all = append(all, o)
			}
		}
	}
	c.log.Add(named(all)...)
	redactEvent(Labels(all), ev)
	return nil
}

// redactEvent takes the values out of all that an event says in words.
func redactEvent(l *redact.Labels, ev *sandbox.Event) {
	for _, s := range []struct {
		text *string
		most int
	}{
		{&ev.Command, sandbox.MaxEventCommand - len(redact.CutMark)}, {&ev.Detail, sandbox.MaxEventDetail},
		{&ev.Cwd, 0}, {&ev.Path, 0}, {&ev.To, 0}, {&ev.Language, 0}, {&ev.User, 0}, {&ev.Signal, 0},
	} {
		if clean := l.String(*s.text); clean != *s.text {
			if *s.text = clean; s.most > 0 {
				*s.text = sandbox.Clip(clean, s.most)
			}
		}
	}
	ev.Changes = Changes(l, ev.Changes)
}

// Changes returns changes without values in the names of files. What it is given stays as it is.
func Changes(l *redact.Labels, all []sandbox.FileChange) []sandbox.FileChange {
	out := all
	for i, c := range all {
		clean := l.String(c.Path)
		if clean == c.Path {
			continue
		}
		if &out[0] == &all[0] {
			out = slices.Clone(all)
		}
		out[i].Path = clean
	}
	return out
}
