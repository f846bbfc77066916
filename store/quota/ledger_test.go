// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sandpit.dev/access/project"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

// recount compares all that a keeper has added up with the records.
func recount(t *testing.T, k *Keeper, now time.Time) {
	t.Helper()
	<-k.turn
	defer func() { k.turn <- struct{}{} }()
	err := k.store.View(context.Background(), func(tx store.Tx) error {
		for name, got := range k.ledger.sums {
			want, err := tx.Projects().Use(name)
			if err != nil {
				return err
			}
			for _, r := range project.Resources() {
				if math.Abs(got[r]-want[r]) > 1e-6 {
					t.Errorf("%q: %s adds up to %v, on record are %v", name, r, got[r], want[r])
				}
			}
		}
		for name, m := range k.ledger.months {
			want, err := readMonth(tx, name, m.begin)
			if err != nil {
				return err
			}
			got, want2 := m.at(now), want.at(now)
			for _, r := range []project.Resource{project.CPUSeconds, project.MemorySeconds} {
				if math.Abs(got[r]-want2[r]) > 1e-3 {
					t.Errorf("%q: %s adds up to %v, on record are %v", name, r, got[r], want2[r])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// dicer does what dice say to the records of three projects and of the server's own, in transactions of several changes.
type dicer struct {
	dice      *rand.Rand
	boxes     []*sandbox.Sandbox
	snapshots []*sandbox.Snapshot
	volumes   []*sandbox.Volume
	gone      []sandbox.ID // deleted in the transaction that goes on, with meters yet
	n         int
	now       time.Time
}

func (d *dicer) project() string { return []string{"a", "b", "c", "_pool"}[d.dice.IntN(4)] }

// change does one thing. What it did is in its lists when undo is not called.
func (d *dicer) change(tx store.Tx) (undo func(), err error) {
	limits := sandbox.Limits{CPU: float64(1+d.dice.IntN(40)) / 7, MemoryMB: 1 + d.dice.IntN(1000), DiskMB: 1 + d.dice.IntN(1000), Pids: 1 + d.dice.IntN(1000)}
	states := sandbox.States()
	state := states[d.dice.IntN(len(states))]
	boxes, snapshots, volumes := append([]*sandbox.Sandbox(nil), d.boxes...), append([]*sandbox.Snapshot(nil), d.snapshots...), append([]*sandbox.Volume(nil), d.volumes...)
	undo = func() { d.boxes, d.snapshots, d.volumes = boxes, snapshots, volumes }
	at := func(n int) int { return d.dice.IntN(max(n, 1)) }
	d.n++
	switch kind := d.dice.IntN(12); {
	case kind < 3:
		s := &sandbox.Sandbox{ID: sandbox.NewID(), Project: d.project(), Limits: limits, State: state, CreatedAt: d.now}
		if err := tx.Sandboxes().Insert(s); err != nil {
			return undo, err
		}
		d.boxes = append(d.boxes, s)
	case kind < 5 && len(d.boxes) > 0:
		i := at(len(d.boxes))
		next := *d.boxes[i]
		next.Limits, next.State = limits, state
		if state == sandbox.Restoring {
			next.StopCause = sandbox.CauseRestore
		}
		if err := tx.Sandboxes().Update(&next); err != nil {
			return undo, err
		}
		d.boxes[i] = &next
	case kind == 5 && len(d.boxes) > 0:
		i := at(len(d.boxes))
		if err := tx.Sandboxes().Delete(d.boxes[i].ID); err != nil {
			return undo, err
		}
		d.gone = append(d.gone, d.boxes[i].ID)
		d.boxes = append(d.boxes[:i:i], d.boxes[i+1:]...)
	case kind == 6:
		s := &sandbox.Snapshot{ID: sandbox.NewID(), Project: d.project(), Sandbox: "box", Auto: d.dice.IntN(3) == 0, State: []sandbox.SnapshotState{sandbox.SnapshotCreating, sandbox.SnapshotReady}[d.dice.IntN(2)], CreatedAt: d.now}
		if err := tx.Snapshots().Insert(s); err != nil {
			return undo, err
		}
		d.snapshots = append(d.snapshots, s)
	case kind == 7 && len(d.snapshots) > 0:
		i := at(len(d.snapshots))
		next := *d.snapshots[i]
		next.State = []sandbox.SnapshotState{sandbox.SnapshotCreating, sandbox.SnapshotReady, sandbox.SnapshotDeleting}[d.dice.IntN(3)]
		if err := tx.Snapshots().Update(&next); err != nil {
			return undo, err
		}
		d.snapshots[i] = &next
	case kind == 8 && len(d.snapshots) > 0:
		i := at(len(d.snapshots))
		if err := tx.Snapshots().Delete(d.snapshots[i].ID); err != nil {
			return undo, err
		}
		d.snapshots = append(d.snapshots[:i:i], d.snapshots[i+1:]...)
	case kind == 9:
		v := &sandbox.Volume{ID: sandbox.NewID(), Project: d.project(), Name: fmt.Sprint("v", d.n), SizeMB: 1 + d.dice.IntN(100), State: sandbox.VolumeReady, CreatedAt: d.now}
		if err := tx.Volumes().Insert(v); err != nil {
			return undo, err
		}
		d.volumes = append(d.volumes, v)
	case kind == 10 && len(d.volumes) > 0:
		i := at(len(d.volumes))
		next := *d.volumes[i]
		next.SizeMB = 1 + d.dice.IntN(100)
		if err := tx.Volumes().Update(&next); err != nil {
			return undo, err
		}
		d.volumes[i] = &next
	case kind == 11 && len(d.volumes) > 0:
		i := at(len(d.volumes))
		if err := tx.Volumes().Delete(d.volumes[i].ID); err != nil {
			return undo, err
		}
		d.volumes = append(d.volumes[:i:i], d.volumes[i+1:]...)
	}
	return undo, nil
}

// meters does what the recorder of usage does: adds time, and puts and deletes meters.
func (d *dicer) meters(tx store.Tx) error {
	if len(d.boxes) == 0 {
		return nil
	}
	s := d.boxes[d.dice.IntN(len(d.boxes))]
	if d.dice.IntN(4) == 0 {
		return tx.Usage().DeleteMeter(s.ID)
	}
	ago := time.Duration(d.dice.IntN(100*3600*1000)) * time.Millisecond
	if err := tx.Usage().Add(store.Used{Project: s.Project, Time: d.now.Add(-ago), CPUSeconds: float64(d.dice.IntN(1e6)), MemorySeconds: float64(d.dice.IntN(1e6))}); err != nil {
		return err
	}
	return tx.Usage().PutMeter(&store.UsageMeter{
		Sandbox: s.ID, Project: s.Project, CPU: s.Limits.CPU, MemoryMB: s.Limits.MemoryMB, DiskMB: s.Limits.DiskMB,
		Running: d.dice.IntN(3) > 0, Kept: true, RunUntil: d.now.Add(-ago), DiskUntil: d.now,
	})
}

// TestWhatIsAddedUpIsWhatIsOnRecord has transactions of several changes be committed, refused, given up and cut off, and
// keepers come and go; what is added up is always what a count of the records says, and never more than the quotas.
func TestWhatIsAddedUpIsWhatIsOnRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.db")
	d := &dicer{dice: rand.New(rand.NewPCG(23, 4)), now: time.Date(2026, 3, 2, 1, 0, 0, 0, time.UTC)}
	var quotas project.Amounts
	for _, r := range project.Resources() {
		quotas[r] = []float64{25, 12, 30, 5000, 5000, 10000, 6, 8, 0, 5e7, 5e7}[r]
	}
	var db *sqlstore.Store
	var k *Keeper
	open := func() {
		var err error
		if db, err = sqlstore.Open(t.Context(), sqlstore.Options{Path: path}); err != nil {
			t.Fatal(err)
		}
		if k, err = Open(t.Context(), db, Options{New: quotas, Host: project.Amounts{project.Memory: 9000, project.Disk: 22000}, Now: func() time.Time { return d.now }}); err != nil {
			t.Fatal(err)
		}
	}
	open()
	t.Cleanup(func() { _ = db.Close() })
	given := errors.New("given up")
	count := map[string]int{}
	for step := range 3000 {
		var undo []func()
		ctx, cancel := context.WithCancel(t.Context())
		how := d.dice.IntN(12)
		err := func() (err error) {
			defer func() {
				if recover() != nil {
					err = given
				}
			}()
			d.gone = nil
			return k.Store().Update(ctx, func(tx store.Tx) error {
				for range 1 + d.dice.IntN(4) {
					u, err := d.change(tx)
					undo = append(undo, u)
					if err != nil {
						return err
					}
					if err := d.meters(tx); err != nil {
						return err
					}
				}
				for _, id := range d.gone { // at the end, as the recorder of usage does
					if err := tx.Usage().DeleteMeter(id); err != nil {
						return err
					}
				}
				switch how {
				case 0:
					return given
				case 1:
					cancel() // the commit does not happen
				case 2:
					panic("a verb's")
				}
				return nil
			})
		}()
		cancel()
		switch {
		case err == nil:
			count["committed"]++
		case fault.Is(err, fault.Exhausted):
			count["refused"]++
		case errors.Is(err, given), errors.Is(err, context.Canceled):
			count["given up"]++
		default:
			t.Fatal(err)
		}
		if err != nil && len(undo) > 0 {
			undo[0]()
		}
		d.now = d.now.Add(time.Duration(d.dice.IntN(600_000)) * time.Millisecond) // into the next month
		if step%50 == 0 {
			recount(t, k, d.now)
		}
		if step%499 == 498 {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			open()
		}
	}
	recount(t, k, d.now)
	for what, least := range map[string]int{"committed": 500, "refused": 150, "given up": 150} {
		if count[what] < least {
			t.Errorf("%d were %s, want at least %d", count[what], what, least)
		}
	}
	t.Logf("%v", count)
}

// TestWhatIsAddedUpAtOnceIsWhatIsOnRecord is the same with many at once.
func TestWhatIsAddedUpAtOnceIsWhatIsOnRecord(t *testing.T) {
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "records.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	now := time.Date(2026, 3, 2, 1, 0, 0, 0, time.UTC)
	k, err := Open(t.Context(), db, Options{New: project.Amounts{project.Sandboxes: 60, project.Memory: 20000}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			d := &dicer{dice: rand.New(rand.NewPCG(uint64(n), 5)), now: now}
			for range 200 {
				var undo func()
				if err := k.Store().Update(t.Context(), func(tx store.Tx) (err error) {
					undo, err = d.change(tx)
					return err
				}); err != nil {
					undo()
					if !fault.Is(err, fault.Exhausted) && !fault.Is(err, fault.Exists) { // volumes have the same names
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	recount(t, k, now)
	for name, a := range k.ledger.sums {
		if name != "" && name[0] != '_' && (a[project.Sandboxes] > 60 || a[project.Memory] > 20000) {
			t.Errorf("%s has %v", name, a.ByName())
		}
	}
}

// TestABudgetThatIsFirstReadBehindADeleteIsWhatIsOnRecord has one transaction delete a sandbox and begin another, before the
// recorder of usage deletes the first one's meter.
func TestABudgetThatIsFirstReadBehindADeleteIsWhatIsOnRecord(t *testing.T) {
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "records.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	now := time.Date(2026, 3, 2, 1, 0, 0, 0, time.UTC)
	open := func() *Keeper {
		k, err := Open(t.Context(), db, Options{New: project.Amounts{project.CPUSeconds: 1e6}, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	box := func() *sandbox.Sandbox {
		return &sandbox.Sandbox{ID: sandbox.NewID(), Project: "a", Limits: sandbox.Limits{CPU: 2, MemoryMB: 512}, State: sandbox.Running, CreatedAt: now}
	}
	meter := func(s *sandbox.Sandbox) *store.UsageMeter {
		return &store.UsageMeter{Sandbox: s.ID, Project: "a", CPU: 2, MemoryMB: 512, Running: true, Kept: true, RunUntil: now, DiskUntil: now}
	}
	first, second := box(), box()
	if err := open().Store().Update(t.Context(), func(tx store.Tx) error {
		if err := tx.Sandboxes().Insert(first); err != nil {
			return err
		}
		return tx.Usage().PutMeter(meter(first))
	}); err != nil {
		t.Fatal(err)
	}
	k := open() // it knows no month yet
	if err := k.Store().Update(t.Context(), func(tx store.Tx) error {
		if err := tx.Sandboxes().Delete(first.ID); err != nil {
			return err
		}
		if err := tx.Sandboxes().Insert(second); err != nil {
			return err
		}
		if err := tx.Usage().PutMeter(meter(second)); err != nil {
			return err
		}
		return tx.Usage().DeleteMeter(first.ID)
	}); err != nil {
		t.Fatal(err)
	}
	if _, known := k.ledger.months["a"]; !known {
		t.Fatal("the month was not read")
	}
	now = now.Add(time.Hour)
	recount(t, k, now)
}
