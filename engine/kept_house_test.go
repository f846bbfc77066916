// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// snapshot takes one that has to work out.
func (h *house) snapshot(ref, name string) *sandbox.Snapshot {
	h.t.Helper()
	snap, err := h.engine.CreateSnapshot(h.t.Context(), alice, ref, engine.SnapshotRequest{Name: name})
	if err != nil {
		h.t.Fatalf("CreateSnapshot %s: %v", name, err)
	}
	return snap
}

// holds makes a sandbox of a snapshot, and says what a file of it holds ("": it has
// none). The sandbox is deleted.
func (h *house) holds(snap, file string) string {
	h.t.Helper()
	s := h.create(engine.CreateRequest{From: snap})
	defer h.remove(string(s.ID))
	return h.reads(string(s.ID), file)
}

func (h *house) remove(ref string) {
	h.t.Helper()
	if err := h.engine.Delete(h.t.Context(), alice, ref); err != nil {
		h.t.Fatalf("Delete %s: %v", ref, err)
	}
}

func (h *house) reads(ref, file string) string {
	h.t.Helper()
	return string(h.exec(ref, "cat "+file+" 2>/dev/null || true").Stdout)
}

// list returns the snapshots that callers see, newest first.
func (h *house) list(r snapshot.Query) []*sandbox.Snapshot {
	h.t.Helper()
	p, err := h.engine.Snapshots(h.t.Context(), alice, r)
	if err != nil {
		h.t.Fatal(err)
	}
	if p.Next == "" && p.Total < len(p.Items) {
		h.t.Errorf("%d in all, and %d on the page", p.Total, len(p.Items))
	}
	return p.Items
}

// keptRecords returns all records of snapshots and of volumes, in whatever state,
// straight from the store.
func (h *house) keptRecords() (snaps []*sandbox.Snapshot, vols []*sandbox.Volume) {
	h.t.Helper()
	err := h.store.View(context.Background(), func(tx store.Tx) (err error) {
		if snaps, _, err = tx.Snapshots().List(store.SnapshotQuery{Limit: store.MaxPage}); err != nil {
			return err
		}
		vols, err = tx.Volumes().List("")
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return snaps, vols
}

// keptWhole checks that of snapshots and volumes nothing is halfway: all records are
// ready, and the driver keeps what they name and nothing else.
func (h *house) keptWhole() {
	h.t.Helper()
	var want, have []sandbox.ID
	snaps, vols := h.keptRecords()
	for _, s := range snaps {
		want = append(want, s.ID)
		if s.State != sandbox.SnapshotReady {
			h.t.Errorf("the snapshot %s is %s", s.ID, s.State)
		}
	}
	for _, v := range vols {
		want = append(want, v.ID)
		if v.State != sandbox.VolumeReady {
			h.t.Errorf("the volume %s is %s", v.ID, v.State)
		}
	}
	d := h.host.Driver()
	for _, list := range []func(context.Context) ([]sandbox.ID, error){d.Snapshots, d.Volumes} {
		ids, err := list(context.Background())
		if err != nil {
			h.t.Fatal(err)
		}
		have = append(have, ids...)
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		h.t.Errorf("the records name %v, the driver keeps %v", want, have)
	}
}

// settledKept waits until deletions that nobody waits for are over.
func (h *house) settledKept() {
	h.t.Helper()
	h.await("the end of deletions", func() bool {
		snaps, vols := h.keptRecords()
		return !slices.ContainsFunc(snaps, func(s *sandbox.Snapshot) bool { return s.State != sandbox.SnapshotReady }) &&
			!slices.ContainsFunc(vols, func(v *sandbox.Volume) bool { return v.State != sandbox.VolumeReady })
	})
	h.keptWhole()
}

func ids(snaps []*sandbox.Snapshot) []sandbox.ID {
	var out []sandbox.ID
	for _, s := range snaps {
		out = append(out, s.ID)
	}
	return out
}

func wantIDs(t testing.TB, got []sandbox.ID, want ...sandbox.ID) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// nobody may do nothing.
var nobody = access.Caller{Project: "default", Actor: "nobody"}

// soonEnough is for what has to fail for as long as it is waited for.
const soonEnough = 100 * time.Millisecond

// loseDisk has the host lose an instance that is down, with its disk.
func (h *house) loseDisk(id sandbox.ID) {
	h.t.Helper()
	inst, err := h.host.Driver().Open(context.Background(), runtime.Handle{ID: id})
	if err == nil {
		err = inst.Remove(context.Background())
	}
	if err != nil {
		h.t.Fatal(err)
	}
}
