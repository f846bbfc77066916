// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package quota holds projects to their quotas: its store refuses, with fault.Exhausted, the transaction that would
// take more than a quota allows. The check is part of that transaction, and what it compares is read from the records
// themselves once, and follows each commit from then on, so that no number of requests at once, no crash and no restart
// lets a project have more; and every verb is held to it without knowing. A change that takes no more than before is never refused: stopping, deleting and what the server does
// to finish what a crash cut off succeed whatever a quota is.
package quota

import (
	"context"
	"sync/atomic"
	"time"

	"sandpit.dev/access/project"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Options of a [Keeper].
type Options struct {
	// Host is the most that all projects together may have of what a host has, see [project.Amounts]; zero: no bound.
	Host project.Amounts
	// Admit is asked before something begins to run, and its error refuses that: the host carries no more. nil: it
	// carries anything.
	Admit func() error
	// New are the quotas of a project that is made without being given any.
	New project.Amounts
	Now func() time.Time // nil: time.Now
}

// Keeper holds the projects of a store to their quotas. All of the store's Updates have to be through [Keeper.Store],
// which has them happen one after another.
type Keeper struct {
	store store.Store
	o     Options
	host  []project.Resource // that Options.Host bounds
	fresh atomic.Pointer[project.Amounts]

	// turn holds one token: its holder updates, until what it committed is known here. Channels wake in order of
	// arrival, and waiting ends with the context.
	turn chan struct{}
	// Guarded by turn, as the last commit left them:
	known  map[string]*project.Project // nil: to be read
	ledger ledger
}

// Open reads the projects of a store, and makes the record of those that all servers have.
func Open(ctx context.Context, s store.Store, o Options, have ...string) (*Keeper, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &Keeper{store: s, o: o, host: bounded(o.Host), turn: make(chan struct{}, 1)}
	k.turn <- struct{}{}
	k.SetNew(o.New)
	return k, k.update(ctx, func(t *keptTx) error {
		for _, name := range have {
			if err := t.ensure(name); err != nil {
				return err
			}
		}
		return nil
	})
}

// New returns the quotas of a project that is made without being given any.
func (k *Keeper) New() project.Amounts { return *k.fresh.Load() }

// SetNew has projects that are made from now on get other quotas.
func (k *Keeper) SetNew(a project.Amounts) { k.fresh.Store(&a) }

// Host returns the most that all projects together may have.
func (k *Keeper) Host() project.Amounts { return k.o.Host }

// Now is the keeper's clock.
func (k *Keeper) Now() time.Time { return k.o.Now() }

// Store returns the store that holds projects to their quotas.
func (k *Keeper) Store() store.Store { return keptStore{k.store, k} }

type keptStore struct {
	store.Store
	k *Keeper
}

func (s keptStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.k.update(ctx, func(t *keptTx) error { return fn(t) })
}

func (k *Keeper) update(ctx context.Context, fn func(*keptTx) error) error {
	select {
	case <-k.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { k.turn <- struct{}{} }()
	t := &keptTx{k: k}
	asked, committed := false, false // for the commit
	defer func() { t.end(asked, committed) }()
	err := k.store.Update(ctx, func(tx store.Tx) error {
		t.Tx = tx
		err := fn(t)
		asked = err == nil
		return err
	})
	committed = err == nil
	return err
}

// keptTx is one Update. No other runs until it has ended.
type keptTx struct {
	store.Tx
	k       *Keeper
	own     ledger       // what it has read and changed
	changed bool         // a project's record
	gone    []sandbox.ID // sandboxes that it deleted
}

// end has the keeper know what was committed. What is not sure to be one or the other it reads again.
func (t *keptTx) end(asked, committed bool) {
	if t.changed {
		t.k.known = nil
	}
	switch {
	case committed:
		t.k.ledger.put(t.own)
	case asked:
		t.k.known, t.k.ledger = nil, ledger{}
	}
}

// project returns the record of a project as the transaction sees it; nil: there is none.
func (t *keptTx) project(name string) (*project.Project, error) {
	if t.changed {
		p, err := t.Tx.Projects().Get(name)
		if fault.Is(err, fault.NotFound) {
			return nil, nil
		}
		return p, err
	}
	if t.k.known == nil {
		all, err := t.Tx.Projects().List()
		if err != nil {
			return nil, err
		}
		t.k.known = make(map[string]*project.Project, len(all))
		for _, p := range all {
			t.k.known[p.Name] = p
		}
	}
	return t.k.known[name], nil
}

// ensure makes the record of a project that has none.
func (t *keptTx) ensure(name string) error {
	if own(name) {
		return nil
	}
	p, err := t.project(name)
	if err != nil || p != nil {
		return err
	}
	t.changed = true
	return t.Tx.Projects().Insert(&project.Project{Name: name, CreatedAt: t.k.o.Now().UTC().Truncate(time.Microsecond), Quotas: t.k.New()})
}

// own reports whether a project is one of the server's own, which has no record, nor quotas.
func own(name string) bool { return name == "" || name[0] == '_' }

func bounded(a project.Amounts) (all []project.Resource) {
	for _, r := range project.Resources() {
		if a[r] > 0 {
			all = append(all, r)
		}
	}
	return all
}
