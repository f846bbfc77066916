// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"strings"

	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Query selects snapshots.
type Query struct {
	Sandbox string // a sandbox, or the id of one that was deleted; empty: the whole project's
	Limit   int    // as in store.SnapshotQuery
	Cursor  string
	Oldest  bool // oldest first; else newest first
}

// Page is one page of snapshots.
type Page struct {
	Items []*sandbox.Snapshot
	Next  string // the cursor of the next page; empty at the end
	Total int    // how many match in all
}

// List returns the snapshots of a project that can be used: not those that are being taken
// or deleted.
func (k *Keeper) List(ctx context.Context, project string, r Query) (Page, error) {
	q := store.SnapshotQuery{
		Project: project, States: []sandbox.SnapshotState{sandbox.SnapshotReady},
		Oldest: r.Oldest, Limit: r.Limit, Cursor: r.Cursor,
	}
	var p Page
	err := k.core.Store.View(ctx, func(tx store.Tx) (err error) {
		if r.Sandbox != "" {
			if q.Sandbox, err = ownerOf(tx, project, r.Sandbox); err != nil {
				return err
			}
		}
		if p.Items, p.Next, err = tx.Snapshots().List(q); err != nil {
			return err
		}
		p.Total, err = tx.Snapshots().Count(q)
		return err
	})
	if err != nil {
		return Page{}, err
	}
	return p, nil
}

// Find finds one that is ready, by its id or as SANDBOX/NAME. Of a sandbox (of), the name of one of its
// snapshots will do, and SANDBOX is to be that one: another's is meant only where its id is given.
func (k *Keeper) Find(ctx context.Context, project, of, ref string) (found *sandbox.Snapshot, err error) {
	err = k.core.Store.View(ctx, func(tx store.Tx) error {
		found, err = byRef(tx, project, of, ref)
		return err
	})
	return found, err
}

// Hold finds one and holds it, so that it is neither deleted nor archived meanwhile. One that is archived
// is brought back first.
func (k *Keeper) Hold(ctx context.Context, project, of, ref string) (*sandbox.Snapshot, func(), error) {
	snap, err := k.Find(ctx, project, of, ref)
	if err != nil {
		return nil, nil, err
	}
	release, err := k.core.Holds.Share(ctx, snap.ID)
	if err != nil {
		return nil, nil, err
	}
	// It may have been deleted before it was held; with its name, not with its id.
	if snap, err = k.Find(ctx, project, "", string(snap.ID)); err != nil {
		release()
		return nil, nil, err
	}
	if snap.Archive.Whole() {
		release()
		if err := k.back(ctx, snap.ID); err != nil {
			return nil, nil, err
		}
		return k.Hold(ctx, project, "", string(snap.ID))
	}
	return snap, release, nil
}

func byRef(tx store.Tx, project, of, ref string) (*sandbox.Snapshot, error) {
	whole, about := ref, of
	if owner, rest, ok := strings.Cut(ref, "/"); ok {
		of, ref = owner, rest
	}
	var owner sandbox.ID
	var err error
	if of != "" {
		if owner, err = ownerOf(tx, project, of); err != nil {
			return nil, err
		}
	}
	var snap *sandbox.Snapshot
	switch {
	case sandbox.ValidID(ref):
		snap, err = tx.Snapshots().Get(sandbox.ID(ref))
	case owner != "" && sandbox.CheckSnapshotName("snapshot", ref) == nil:
		snap, err = tx.Snapshots().ByName(owner, ref)
	default:
		return nil, notFound(whole, of)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	// What is another project's is as missing as what never was.
	if err != nil || snap.Project != project || snap.State != sandbox.SnapshotReady {
		return nil, notFound(whole, of)
	}
	if whole == ref {
		return snap, nil
	}
	if snap.Sandbox != owner { // by its id
		return nil, fault.New(fault.NotFound, "there is no snapshot %q: %s is one of the sandbox %s", sandbox.Clip(whole, 80), snap.ID, snap.Sandbox).
			WithRemedy("leave the sandbox out: an id needs none")
	}
	if about != "" {
		if owner, err = ownerOf(tx, project, about); err != nil {
			return nil, err
		}
	}
	if snap.Sandbox != owner {
		return nil, fault.New(fault.Invalid, "the snapshot %q is another sandbox's", sandbox.Clip(whole, 80)).
			WithRemedy("name one of this sandbox's; if the other's is meant, give its id, %s", snap.ID)
	}
	return snap, nil
}

// ownerOf returns the id of a sandbox, also of one that was deleted and left snapshots.
func ownerOf(tx store.Tx, project, ref string) (sandbox.ID, error) {
	if !sandbox.ValidID(ref) {
		if sandbox.CheckKey("sandbox", ref) != nil {
			return "", core.NoSandbox(ref)
		}
		s, err := tx.Sandboxes().ByKey(project, ref)
		if fault.Is(err, fault.NotFound) {
			return "", core.NoSandbox(ref)
		}
		if err != nil {
			return "", err
		}
		return s.ID, nil
	}
	s, err := tx.Sandboxes().Get(sandbox.ID(ref))
	if err == nil && s.Project == project {
		return s.ID, nil
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	left, err := tx.Snapshots().Count(store.SnapshotQuery{Project: project, Sandbox: sandbox.ID(ref)})
	if err != nil {
		return "", err
	}
	if left == 0 {
		return "", core.NoSandbox(ref)
	}
	return sandbox.ID(ref), nil
}

func notFound(ref, of string) *fault.Error {
	err := fault.New(fault.NotFound, "there is no snapshot %q", sandbox.Clip(ref, 80))
	if of == "" {
		return err.WithRemedy("name one by its id, or as SANDBOX/NAME; list the snapshots to see which there are")
	}
	return err.WithRemedy("name one of this sandbox's, or any of the project by its id; list the snapshots to see which there are")
}
