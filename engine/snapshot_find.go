// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// SnapshotsRequest selects snapshots.
type SnapshotsRequest struct {
	Sandbox string // a sandbox, or the id of one that was deleted; empty: the whole project's
	Limit   int    // as in store.SnapshotQuery
	Cursor  string
	Oldest  bool // oldest first; else newest first
}

// SnapshotPage is one page of snapshots.
type SnapshotPage struct {
	Items []*sandbox.Snapshot
	Next  string // the cursor of the next page; empty at the end
	Total int    // how many match in all
}

// Snapshots returns the snapshots that can be used: not those that are being taken
// or deleted. It is no use of a sandbox.
func (e *Engine) Snapshots(ctx context.Context, c access.Caller, r SnapshotsRequest) (SnapshotPage, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return SnapshotPage{}, err
	}
	defer e.group.leave()
	if err := checkPage(r.Limit, 0); err != nil {
		return SnapshotPage{}, err
	}
	q := store.SnapshotQuery{
		Project: c.Project, States: []sandbox.SnapshotState{sandbox.SnapshotReady},
		Oldest: r.Oldest, Limit: r.Limit, Cursor: r.Cursor,
	}
	var p SnapshotPage
	err := e.store.View(ctx, func(tx store.Tx) (err error) {
		if r.Sandbox != "" {
			if q.Sandbox, err = ownerOf(tx, c.Project, r.Sandbox); err != nil {
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
		return SnapshotPage{}, err
	}
	return p, nil
}

// Snapshot returns one. Of a sandbox (of), snap is the name of one of its snapshots, or the id of any
// of the project's; of none (""), an id or SANDBOX/NAME.
func (e *Engine) Snapshot(ctx context.Context, c access.Caller, of, snap string) (*sandbox.Snapshot, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return nil, err
	}
	defer e.group.leave()
	return e.findSnapshot(ctx, c.Project, of, snap)
}

// findSnapshot finds one that is ready, see Snapshot.
func (e *Engine) findSnapshot(ctx context.Context, project, of, ref string) (found *sandbox.Snapshot, err error) {
	err = e.store.View(ctx, func(tx store.Tx) error {
		found, err = snapshotByRef(tx, project, of, ref)
		return err
	})
	return found, err
}

// holdSnapshot finds one and holds it, so that it is not deleted meanwhile.
func (e *Engine) holdSnapshot(ctx context.Context, project, of, ref string) (*sandbox.Snapshot, func(), error) {
	snap, err := e.findSnapshot(ctx, project, of, ref)
	if err != nil {
		return nil, nil, err
	}
	release, err := e.holds.Share(ctx, snap.ID)
	if err != nil {
		return nil, nil, err
	}
	// It may have been deleted before it was held; with its name, not with its id.
	if snap, err = e.findSnapshot(ctx, project, "", string(snap.ID)); err != nil {
		release()
		return nil, nil, err
	}
	return snap, release, nil
}

func snapshotByRef(tx store.Tx, project, of, ref string) (*sandbox.Snapshot, error) {
	whole := ref
	if owner, rest, ok := strings.Cut(ref, "/"); ok && of == "" {
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
		return nil, noSnapshot(whole, of)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	// What is another project's is as missing as what never was.
	if err != nil || snap.Project != project || snap.State != sandbox.SnapshotReady {
		return nil, noSnapshot(whole, of)
	}
	return snap, nil
}

// ownerOf returns the id of a sandbox, also of one that was deleted and left snapshots.
func ownerOf(tx store.Tx, project, ref string) (sandbox.ID, error) {
	if !sandbox.ValidID(ref) {
		if sandbox.CheckKey("sandbox", ref) != nil {
			return "", noSandbox(ref)
		}
		s, err := tx.Sandboxes().ByKey(project, ref)
		if fault.Is(err, fault.NotFound) {
			return "", noSandbox(ref)
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
		return "", noSandbox(ref)
	}
	return sandbox.ID(ref), nil
}

func noSnapshot(ref, of string) *fault.Error {
	err := fault.New(fault.NotFound, "there is no snapshot %q", sandbox.Clip(ref, 80))
	if of == "" {
		return err.WithRemedy("name one by its id, or as SANDBOX/NAME; list the snapshots to see which there are")
	}
	return err.WithRemedy("name one of this sandbox's, or any of the project by its id; list the snapshots to see which there are")
}
