// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"maps"
	"slices"

	"sandpit.dev/fault"
	"sandpit.dev/redact"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Store returns the cache's store, where no event and no request for a network is written with a value in
// it: not by any verb, and none has to think of it.
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

func (e redactedEvents) redact(ev *sandbox.Event) error {
	l, err := e.tx.labels(ev.Project, ev.Sandbox)
	if err == nil {
		redactEvent(l, ev)
	}
	return err
}

func (tx redactedTx) NetworkRequests() store.NetworkRequests {
	return redactedRequests{tx.Tx.NetworkRequests(), tx}
}

type redactedRequests struct {
	store.NetworkRequests
	tx redactedTx
}

// Insert takes values out of a request's words. One of a host with a value in its name is refused.
func (q redactedRequests) Insert(r *store.NetworkRequest) error {
	l, err := q.tx.labels(r.Project, r.Sandbox)
	if err != nil {
		return err
	}
	for _, d := range r.Domains {
		if l.String(d) != d {
			return fault.InvalidField("allow_domains", "a name has the value of a secret in it")
		}
	}
	kept := *r
	kept.Why = l.String(r.Why)
	return q.NetworkRequests.Insert(&kept)
}

// labels are what takes the values of a sandbox's secrets out of records: those that it has in memory,
// or else as the transaction sees them. One that does not open is in no memory.
func (tx redactedTx) labels(project string, of sandbox.ID) (*redact.Labels, error) {
	c := tx.cache
	if l := c.kept(project, of); l != nil {
		return l, nil
	}
	owners := []sandbox.ID{"", of}
	if of == "" {
		owners = owners[:1]
	}
	var all []Secret
	for _, owner := range owners {
		sealed, err := tx.Secrets().List(project, owner)
		if err != nil {
			return nil, err
		}
		for _, s := range sealed {
			if o, err := open(c.ring, &s.Secret, s.Sealed); err == nil {
				all = append(all, o)
			}
		}
	}
	c.log.Add(named(all)...)
	return Labels(all), nil
}

// redactEvent takes the values out of all that an event says in words.
func redactEvent(l *redact.Labels, ev *sandbox.Event) {
	for _, s := range []struct {
		text *string
		most int
	}{
		{&ev.Command, sandbox.MaxEventCommand - len(redact.CutMark)}, {&ev.Detail, sandbox.MaxEventDetail},
		{&ev.Cwd, 0}, {&ev.Path, 0}, {&ev.To, 0}, {&ev.Language, 0}, {&ev.User, 0}, {&ev.Signal, 0}, {&ev.Name, 0},
	} {
		if clean := l.String(*s.text); clean != *s.text {
			if *s.text = clean; s.most > 0 {
				*s.text = sandbox.Clip(clean, s.most)
			}
		}
	}
	ev.Changes = Changes(l, ev.Changes)
	for n, v := range ev.Labels {
		if key, clean := l.String(n), l.String(v); key != n || clean != v {
			ev.Labels = maps.Clone(ev.Labels)
			delete(ev.Labels, n)
			ev.Labels[key] = clean
		}
	}
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
