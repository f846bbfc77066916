// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package quota_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/access/project"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/quota"
	"sandpit.dev/store/sqlstore"
	"sandpit.dev/store/storetest"
)

func open(t testing.TB, o quota.Options) store.Store {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "records.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	k, err := quota.Open(t.Context(), db, o)
	if err != nil {
		t.Fatal(err)
	}
	return k.Store()
}

// It is a store like any other where nothing is bounded, and where all is, generously.
func TestStore(t *testing.T) {
	t.Run("Unbounded", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store { return open(t, quota.Options{}) })
	})
}

func set(t testing.TB, s store.Store, name string, q project.Amounts) {
	t.Helper()
	if err := s.Update(t.Context(), func(tx store.Tx) error {
		p := &project.Project{Name: name, CreatedAt: time.Now(), Quotas: q}
		if err := tx.Projects().Update(p); !fault.Is(err, fault.NotFound) {
			return err
		}
		return tx.Projects().Insert(p)
	}); err != nil {
		t.Fatal(err)
	}
}

func box(state sandbox.State) *sandbox.Sandbox {
	return &sandbox.Sandbox{
		ID: sandbox.NewID(), Project: "web", Limits: sandbox.Limits{CPU: 0.1, MemoryMB: 100, DiskMB: 1000, Pids: 10}, State: state, CreatedAt: time.Now(),
	}
}

func insert(t testing.TB, s store.Store, b *sandbox.Sandbox) error {
	return s.Update(t.Context(), func(tx store.Tx) error { return tx.Sandboxes().Insert(b) })
}

// change commits what fn does to a sandbox. After a refusal the record is as it was.
func change(t testing.TB, s store.Store, b *sandbox.Sandbox, fn func(*sandbox.Sandbox)) error {
	next := *b
	fn(&next)
	err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Sandboxes().Update(&next) })
	if err == nil {
		*b = next
	}
	return err
}

func exhausted(t testing.TB, what string, err error, names ...string) {
	t.Helper()
	if !fault.Is(err, fault.Exhausted) {
		t.Fatalf("%s: got %v, want Exhausted", what, err)
	}
	for _, n := range names {
		if e := fault.As(err); !strings.Contains(e.Message+" "+e.Remedy, n) {
			t.Errorf("%s: %q, %q does not name %q", what, e.Message, e.Remedy, n)
		}
	}
}

func TestEachQuotaOfSandboxesRefusesTheFirstThatIsTooMuch(t *testing.T) {
	for r, q := range map[project.Resource]float64{
		project.Sandboxes: 3, project.Running: 3, project.CPU: 0.3, project.Memory: 350, project.Processes: 39, project.Disk: 3999,
	} {
		t.Run(r.String(), func(t *testing.T) {
			s := open(t, quota.Options{})
			var quotas project.Amounts
			quotas[r] = q
			set(t, s, "web", quotas)
			set(t, s, "api", quotas)
			for range 3 {
				if err := insert(t, s, box(sandbox.Creating)); err != nil {
					t.Fatal(err)
				}
			}
			err := insert(t, s, box(sandbox.Creating))
			exhausted(t, "the fourth", err, r.String(), "web", fmt.Sprint(q), "project set")
			waits := r != project.Sandboxes && r != project.Disk
			if got := fault.As(err).Retry > 0; got != waits {
				t.Errorf("it says when to try again: %v, want %v", got, waits)
			}
			other := box(sandbox.Creating)
			other.Project = "api"
			if err := insert(t, s, other); err != nil {
				t.Errorf("another project is held to it: %v", err)
			}
			stopped := insert(t, s, box(sandbox.Stopped))
			if waits != (stopped == nil) {
				t.Errorf("one that does not run: got %v", stopped)
			}
		})
	}
}

// What a verb does after a crash, and what gives something back, is never refused: each arrow of the table of states that takes
// no more is tried above a quota that was lowered, and each that takes more is refused.
func TestAboveAQuotaWhatTakesNoMoreGoesOn(t *testing.T) {
	s := open(t, quota.Options{})
	set(t, s, "web", project.Amounts{})
	type arrow struct {
		b  *sandbox.Sandbox
		to sandbox.State
	}
	var all []arrow
	for _, from := range sandbox.States() {
		for _, to := range from.Next() {
			b := box(from)
			if from == sandbox.Restoring {
				b.StopCause = sandbox.CauseRestore
			}
			if err := insert(t, s, b); err != nil {
				t.Fatal(err)
			}
			all = append(all, arrow{b, to})
		}
	}
	set(t, s, "web", project.Amounts{project.Sandboxes: 1, project.Running: 1, project.CPU: 0.1, project.Memory: 1, project.Processes: 1, project.Disk: 1})
	takesMore := map[sandbox.State][]sandbox.State{
		sandbox.Paused:   {sandbox.Resuming, sandbox.Restoring},
		sandbox.Stopped:  {sandbox.Starting},
		sandbox.Failed:   {sandbox.Restoring},
		sandbox.Archived: {sandbox.Unarchiving},
	}
	refused := 0
	for _, a := range all {
		from := a.b.State
		err := change(t, s, a.b, func(b *sandbox.Sandbox) {
			b.State = a.to
			if a.to == sandbox.Restoring && from != sandbox.Stopped {
				b.StopCause = sandbox.CauseRestore
			}
		})
		want := false
		for _, to := range takesMore[from] {
			want = want || to == a.to
		}
		if want {
			refused++
			exhausted(t, fmt.Sprint(from, " to ", a.to), err)
		} else if err != nil {
			t.Errorf("%s to %s: %v", from, a.to, err)
		}
	}
	if refused != 5 {
		t.Errorf("%d arrows were refused, want 5", refused)
	}
}

func TestLimitsGrowAsFarAsAQuotaAllows(t *testing.T) {
	s := open(t, quota.Options{})
	set(t, s, "web", project.Amounts{project.Memory: 150, project.Disk: 1500})
	b := box(sandbox.Running)
	if err := insert(t, s, b); err != nil {
		t.Fatal(err)
	}
	exhausted(t, "memory", change(t, s, b, func(b *sandbox.Sandbox) { b.Limits.MemoryMB = 151 }), "memory_mb", "100 are in use", "51 more")
	exhausted(t, "disk", change(t, s, b, func(b *sandbox.Sandbox) { b.Limits.DiskMB = 1501 }), "disk_mb")
	if err := change(t, s, b, func(b *sandbox.Sandbox) { b.Limits.MemoryMB, b.Limits.DiskMB = 150, 1500 }); err != nil {
		t.Error(err)
	}
	set(t, s, "web", project.Amounts{project.Memory: 1, project.Disk: 1})
	if err := change(t, s, b, func(b *sandbox.Sandbox) { b.Limits.MemoryMB, b.Metadata = 149, map[string]string{"a": "b"} }); err != nil {
		t.Errorf("less, above the quota: %v", err)
	}
}

func TestAllOrNoneOfATransactionFits(t *testing.T) {
	s := open(t, quota.Options{})
	set(t, s, "web", project.Amounts{project.Sandboxes: 3})
	forks := func(n int) error {
		return s.Update(t.Context(), func(tx store.Tx) error {
			for range n {
				if err := tx.Sandboxes().Insert(box(sandbox.Creating)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	exhausted(t, "four", forks(4), "sandboxes")
	if err := forks(3); err != nil {
		t.Errorf("three, after four were refused: %v", err)
	}
	exhausted(t, "one more", forks(1))
}

func TestSnapshotsCountWhenTheyAreReady(t *testing.T) {
	s := open(t, quota.Options{})
	set(t, s, "web", project.Amounts{project.Snapshots: 2})
	take := func(auto bool, replace *sandbox.Snapshot) (*sandbox.Snapshot, error) {
		snap := &sandbox.Snapshot{ID: sandbox.NewID(), Project: "web", Sandbox: "box", Auto: auto, State: sandbox.SnapshotCreating, CreatedAt: time.Now()}
		if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Snapshots().Insert(snap) }); err != nil {
			t.Fatalf("an intent was refused: %v", err)
		}
		ready := *snap
		ready.State = sandbox.SnapshotReady
		return &ready, s.Update(t.Context(), func(tx store.Tx) error {
			if replace != nil {
				replace.State = sandbox.SnapshotDeleting
				if err := tx.Snapshots().Update(replace); err != nil {
					return err
				}
			}
			return tx.Snapshots().Update(&ready)
		})
	}
	first, err := take(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := take(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = take(false, nil)
	exhausted(t, "a third", err, "snapshots", "2 are in use")
	if _, err = take(true, nil); err != nil {
		t.Errorf("a checkpoint: %v", err)
	}
	if _, err = take(false, second); err != nil {
		t.Errorf("in the place of another: %v", err)
	}
	set(t, s, "web", project.Amounts{project.Snapshots: 1})
	first.Detail = "changed"
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Snapshots().Update(first) }); err != nil {
		t.Errorf("a change of one that there is: %v", err)
	}
}

func TestVolumesAreCountedAndHoldDisk(t *testing.T) {
	s := open(t, quota.Options{})
	set(t, s, "web", project.Amounts{project.Volumes: 2, project.Disk: 1500})
	n := 0
	make := func(size int) (*sandbox.Volume, error) {
		n++
		v := &sandbox.Volume{ID: sandbox.NewID(), Project: "web", Name: fmt.Sprint("v", n), SizeMB: size, State: sandbox.VolumeReady, CreatedAt: time.Now()}
		return v, s.Update(t.Context(), func(tx store.Tx) error { return tx.Volumes().Insert(v) })
	}
	v, err := make(500)
	if err != nil {
		t.Fatal(err)
	}
	_, err = make(0)
	exhausted(t, "one without a size", err, "disk_mb", "size_mb")
	if err := insert(t, s, box(sandbox.Stopped)); err != nil {
		t.Fatal(err)
	}
	_, err = make(1)
	exhausted(t, "beside a sandbox", err, "disk_mb", "1500 are in use")
	resize := func(to int) error {
		next := *v
		next.SizeMB = to
		return s.Update(t.Context(), func(tx store.Tx) error { return tx.Volumes().Update(&next) })
	}
	exhausted(t, "larger", resize(501), "disk_mb")
	exhausted(t, "without a size", resize(0), "disk_mb")
	if err := resize(499); err != nil {
		t.Error(err)
	}
	if _, err = make(1); err != nil {
		t.Error(err)
	}
	set(t, s, "web", project.Amounts{project.Volumes: 2})
	_, err = make(0)
	exhausted(t, "a third", err, "volumes")
}

func TestCommandsOfADayAreCounted(t *testing.T) {
	now := time.Date(2026, 3, 4, 23, 59, 0, 0, time.UTC)
	s := open(t, quota.Options{Now: func() time.Time { return now }})
	set(t, s, "web", project.Amounts{project.Commands: 2})
	n := 0
	begin := func(via string) error {
		n++
		return s.Update(t.Context(), func(tx store.Tx) error {
			return tx.Events().Append(&sandbox.Event{Project: "web", Sandbox: "box", Type: sandbox.EventExec, ProcessID: fmt.Sprint("p", n), Via: via, At: now})
		})
	}
	for range 2 {
		if err := begin("rest"); err != nil {
			t.Fatal(err)
		}
	}
	err := begin("rest")
	exhausted(t, "a third", err, "commands_per_day", "2 are in use")
	if e := fault.As(err); e.Retry != time.Minute {
		t.Errorf("try again in %v, want a minute", e.Retry)
	}
	if err := begin("system"); err != nil {
		t.Errorf("the server's own: %v", err)
	}
	now = now.Add(time.Minute)
	if err := begin("mcp"); err != nil {
		t.Errorf("on the next day: %v", err)
	}
}

func TestTheHostBoundsAllProjectsTogether(t *testing.T) {
	s := open(t, quota.Options{Host: project.Amounts{project.Memory: 250}})
	names := []string{"web", "api", "web"}
	for i, name := range names {
		b := box(sandbox.Creating)
		b.Project = name
		err := insert(t, s, b)
		if i < 2 && err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			exhausted(t, "the third", err, "memory_mb", "250", "overcommit")
		}
	}
	if err := insert(t, s, box(sandbox.Stopped)); err != nil {
		t.Errorf("a stopped one: %v", err)
	}
}

// A quota counts from the transaction that sets it, and one that was not committed counts nothing.
func TestAQuotaIsThatOfTheLastCommit(t *testing.T) {
	s := open(t, quota.Options{New: project.Amounts{project.Sandboxes: 2}})
	if err := insert(t, s, box(sandbox.Stopped)); err != nil { // makes the project
		t.Fatal(err)
	}
	stop := errors.New("stop")
	err := s.Update(t.Context(), func(tx store.Tx) error {
		if err := tx.Projects().Update(&project.Project{Name: "web", Quotas: project.Amounts{project.Sandboxes: 1}}); err != nil {
			return err
		}
		exhausted(t, "in the same transaction", tx.Sandboxes().Insert(box(sandbox.Stopped)))
		return stop
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if err := insert(t, s, box(sandbox.Stopped)); err != nil {
		t.Errorf("the quota of a transaction that failed holds: %v", err)
	}
	exhausted(t, "a third", insert(t, s, box(sandbox.Stopped)))
	set(t, s, "web", project.Amounts{})
	if err := insert(t, s, box(sandbox.Stopped)); err != nil {
		t.Error(err)
	}
}

func TestOfAThousandAtOnceAsManyFitAsTheQuotaSays(t *testing.T) {
	s := open(t, quota.Options{})
	set(t, s, "web", project.Amounts{project.Sandboxes: 100})
	var wg sync.WaitGroup
	errs := make([]error, 1000)
	for i := range errs {
		wg.Go(func() { errs[i] = insert(t, s, box(sandbox.Creating)) })
	}
	wg.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else if !fault.Is(err, fault.Exhausted) {
			t.Fatal(err)
		}
	}
	if made != 100 {
		t.Errorf("%d were made, want 100", made)
	}
}

// A create in a project of 4,000, with and without quotas.
func BenchmarkInsert(b *testing.B) {
	for name, q := range map[string]project.Amounts{"None": {}, "All": {project.Sandboxes: 1e6, project.Memory: 1e9, project.Disk: 1e9}} {
		b.Run(name, func(b *testing.B) {
			s := open(b, quota.Options{})
			if err := s.Update(b.Context(), func(tx store.Tx) error {
				for range 4000 {
					if err := tx.Sandboxes().Insert(box(sandbox.Running)); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				b.Fatal(err)
			}
			set(b, s, "web", q)
			for b.Loop() {
				one := box(sandbox.Creating)
				if err := s.Update(b.Context(), func(tx store.Tx) error {
					if err := tx.Sandboxes().Insert(one); err != nil {
						return err
					}
					return tx.Sandboxes().Delete(one.ID)
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
