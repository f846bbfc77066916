// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

// house is a store with a recorder, whose clock is set by the test.
type house struct {
	t    *testing.T
	path string
	now  time.Time
	db   *sqlstore.Store
	r    *Recorder
	s    store.Store
}

var start = time.Date(2026, 11, 27, 22, 59, 30, 0, time.UTC)

func newHouse(t *testing.T) *house {
	h := &house{t: t, path: filepath.Join(t.TempDir(), "sandpit.db"), now: start}
	h.open()
	t.Cleanup(func() { _ = h.db.Close() })
	return h
}

func (h *house) open() {
	h.t.Helper()
	db, err := sqlstore.Open(h.t.Context(), sqlstore.Options{Path: h.path})
	if err != nil {
		h.t.Fatal(err)
	}
	h.db, h.r = db, New(db, Options{Now: func() time.Time { return h.now }})
	h.s = h.r.Store()
}

// reopen is another server on the same records.
func (h *house) reopen() {
	h.t.Helper()
	if err := h.db.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.open()
}

func (h *house) update(fn func(store.Tx) error) {
	h.t.Helper()
	if err := h.s.Update(h.t.Context(), fn); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) sum(q store.UsageQuery) []store.Used {
	h.t.Helper()
	all, err := h.r.Sum(h.t.Context(), q)
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

func event(s *sandbox.Sandbox, actor string, at time.Time) *sandbox.Event {
	return &sandbox.Event{Sandbox: s.ID, Project: s.Project, Type: sandbox.EventExec, At: at, Actor: actor, Done: true}
}

// make inserts a record as the engine does.
func (h *house) make(project, actor string, l sandbox.Limits) *sandbox.Sandbox {
	h.t.Helper()
	s := &sandbox.Sandbox{ID: sandbox.NewID(), Project: project, Runtime: "memory", Limits: l, State: sandbox.Creating, CreatedAt: h.now, UpdatedAt: h.now}
	h.update(func(tx store.Tx) error {
		if err := tx.Sandboxes().Insert(s); err != nil {
			return err
		}
		return tx.Events().Append(event(s, actor, h.now))
	})
	return s
}

// become changes a state as the engine does.
func (h *house) become(s *sandbox.Sandbox, state sandbox.State) {
	h.t.Helper()
	from := s.State
	s.State, s.UpdatedAt = state, h.now
	s.RunMeter(from)
	h.update(func(tx store.Tx) error { return tx.Sandboxes().Update(s) })
}

// TestSumsAreExact has 200 sandboxes begin, pause, stop, change and go as dice say, with servers that come and go, and
// compares what is added up with what each of them was seen to be.
func TestSumsAreExact(t *testing.T) {
	h := newHouse(t)
	dice := rand.New(rand.NewPCG(23, 2))
	type one struct {
		*sandbox.Sandbox
		gone bool
	}
	var all []*one
	var want store.Used
	pass := func(d time.Duration) {
		for _, o := range all {
			if o.gone {
				continue
			}
			if o.State != sandbox.Archived {
				want.DiskSeconds += float64(o.Limits.DiskMB) / 1024 * d.Seconds()
			}
			if o.State == sandbox.Running {
				want.RunTime += d
				want.CPUSeconds += o.Limits.CPU * d.Seconds()
				want.MemorySeconds += float64(o.Limits.MemoryMB) / 1024 * d.Seconds()
			}
		}
		h.now = h.now.Add(d)
	}
	for n := range 200 {
		s := h.make(fmt.Sprintf("p%d", n%3), "alice", sandbox.Limits{CPU: []float64{0.5, 1, 2.25}[n%3], MemoryMB: 256 << (n % 3), DiskMB: 1024 << (n % 2)})
		all = append(all, &one{Sandbox: s})
		h.become(s, sandbox.Running)
	}
	for step := range 1500 {
		pass(time.Duration(dice.IntN(90_000_000)) * time.Microsecond)
		o := all[dice.IntN(len(all))]
		if o.gone {
			continue
		}
		switch dice.IntN(9) {
		case 0:
			h.become(o.Sandbox, sandbox.Stopped)
		case 1:
			if o.State == sandbox.Running {
				h.become(o.Sandbox, sandbox.Paused)
			}
		case 2, 3:
			if o.State != sandbox.Archived {
				h.become(o.Sandbox, sandbox.Running)
			}
		case 4: // a command
			want.Commands++
			want.ExecTime += time.Second + 1
			want.Uploaded += 5
			want.Downloaded += 7
			o.ExecCount, o.ExecTime, o.BytesUploaded, o.BytesDownloaded = o.ExecCount+1, o.ExecTime+time.Second+1, o.BytesUploaded+5, o.BytesDownloaded+7
			h.update(func(tx store.Tx) error {
				if err := tx.Sandboxes().Tally(o.Sandbox); err != nil {
					return err
				}
				return tx.Events().Append(event(o.Sandbox, "bob", h.now))
			})
		case 5: // a resize
			o.Limits.MemoryMB, o.UpdatedAt = 128<<dice.IntN(4), h.now
			h.update(func(tx store.Tx) error { return tx.Sandboxes().Update(o.Sandbox) })
		case 6:
			if o.State == sandbox.Stopped {
				h.become(o.Sandbox, sandbox.Archived)
			} else if o.State == sandbox.Archived {
				h.become(o.Sandbox, sandbox.Stopped)
			}
		case 7: // a change that fails leaves nothing
			failed := errors.New("failed")
			next := *o.Sandbox
			next.ExecCount += 100
			err := h.s.Update(t.Context(), func(tx store.Tx) error {
				if err := tx.Sandboxes().Tally(&next); err != nil {
					return err
				}
				return failed
			})
			if !errors.Is(err, failed) {
				t.Fatalf("got %v", err)
			}
		case 8:
			if dice.IntN(6) == 0 {
				o.gone = true
				h.update(func(tx store.Tx) error {
					if err := tx.Sandboxes().Delete(o.ID); err != nil {
						return err
					}
					return tx.Events().Append(event(o.Sandbox, "alice", h.now))
				})
			}
		}
		switch {
		case step%100 == 99:
			h.reopen()
		case step%37 == 36:
			if err := h.r.AddTime(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if step%250 == 249 {
			wantSum(t, fmt.Sprintf("step %d", step), h.sum(store.UsageQuery{})[0], want)
		}
	}
	for _, q := range []store.UsageQuery{{ByProject: true}, {ByHour: true}, {ByDay: true, ByToken: true}} {
		var got store.Used
		rows := h.sum(q)
		for _, u := range rows {
			got = plus(got, u)
		}
		wantSum(t, fmt.Sprintf("%+v", q), got, want)
		if q.ByHour && len(rows) < 15 {
			t.Errorf("18 hours have %d rows", len(rows))
		}
	}
}

func plus(a, b store.Used) store.Used {
	return store.Used{Commands: a.Commands + b.Commands, ExecTime: a.ExecTime + b.ExecTime, RunTime: a.RunTime + b.RunTime, CPUSeconds: a.CPUSeconds + b.CPUSeconds,
		MemorySeconds: a.MemorySeconds + b.MemorySeconds, DiskSeconds: a.DiskSeconds + b.DiskSeconds, Uploaded: a.Uploaded + b.Uploaded, Downloaded: a.Downloaded + b.Downloaded}
}

// wantSum compares sums; those of fractions to a millionth of a second.
func wantSum(t *testing.T, what string, got, want store.Used) {
	t.Helper()
	same := got.Commands == want.Commands && got.ExecTime == want.ExecTime && got.RunTime == want.RunTime && got.Uploaded == want.Uploaded && got.Downloaded == want.Downloaded
	for _, x := range [][2]float64{{got.CPUSeconds, want.CPUSeconds}, {got.MemorySeconds, want.MemorySeconds}, {got.DiskSeconds, want.DiskSeconds}} {
		same = same && math.Abs(x[0]-x[1]) <= 1e-6*max(1, x[1]/1000)
	}
	if !same {
		t.Errorf("%s:\ngot  %+v\nwant %+v", what, got, want)
	}
}

// Old figures go, whatever their number, and the rest says the same.
func TestOldFiguresAreDeleted(t *testing.T) {
	h := newHouse(t)
	const old = 2*pruneBatch + 7
	h.update(func(tx store.Tx) error {
		for n := range old {
			for _, project := range []string{"p", "q"} {
				if err := tx.Usage().Add(store.Used{Project: project, Token: "alice", Time: h.now.Add(-DefaultKeep - time.Duration(n+1)*time.Hour), Commands: 1}); err != nil {
					return err
				}
			}
		}
		return tx.Usage().Add(store.Used{Project: "p", Token: "alice", Time: h.now.Add(-DefaultKeep + time.Hour), Commands: 5})
	})
	if n, err := h.r.Prune(t.Context()); err != nil || n != 2*old {
		t.Errorf("%d were deleted (%v), want %d", n, err, 2*old)
	}
	if got := h.sum(store.UsageQuery{})[0].Commands; got != 5 {
		t.Errorf("%d commands are left, want 5", got)
	}
	if n, err := h.r.Prune(t.Context()); err != nil || n != 0 {
		t.Errorf("a second time: %d (%v)", n, err)
	}
	// What budgets are made of stays, however little is to be kept.
	h.r = New(h.db, Options{Now: func() time.Time { return h.now }, Keep: time.Minute})
	h.update(func(tx store.Tx) error {
		return tx.Usage().Add(store.Used{Project: "p", Token: "alice", Time: h.now.Add(-31 * 24 * time.Hour), Commands: 3})
	})
	if n, err := h.r.Prune(t.Context()); err != nil || n != 1 || h.sum(store.UsageQuery{})[0].Commands != 3 {
		t.Errorf("of those of a month: %d were deleted (%v)", n, err)
	}
}

func TestWhoBeganItIsWhoItCountsFor(t *testing.T) {
	h := newHouse(t)
	s := h.make("p", "alice", sandbox.Limits{CPU: 1, MemoryMB: 1024, DiskMB: 1024})
	h.become(s, sandbox.Running)
	for _, actor := range []string{"bob", "system"} {
		s.ExecCount++
		h.update(func(tx store.Tx) error {
			if err := tx.Events().Append(event(s, actor, h.now)); err != nil {
				return err
			}
			return tx.Sandboxes().Tally(s)
		})
	}
	h.now = h.now.Add(time.Minute) // over an hour's end
	got := h.sum(store.UsageQuery{ByToken: true, ByHour: true})
	hour := start.Truncate(time.Hour)
	want := []store.Used{
		{Token: "alice", Time: hour, Commands: 1, RunTime: 30 * time.Second, CPUSeconds: 30, MemorySeconds: 30, DiskSeconds: 30},
		{Token: "alice", Time: hour.Add(time.Hour), RunTime: 30 * time.Second, CPUSeconds: 30, MemorySeconds: 30, DiskSeconds: 30},
		{Token: "bob", Time: hour, Commands: 1},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestProjectsSeeTheirOwnAlone(t *testing.T) {
	h := newHouse(t)
	h.make("p", "alice", sandbox.Limits{DiskMB: 1024})
	h.make("q", "bob", sandbox.Limits{DiskMB: 2048})
	h.now = h.now.Add(time.Second)
	caller := func(project string, scopes ...access.Scope) access.Caller {
		return access.Caller{Project: project, Scopes: scopes}
	}
	ctx := context.Background()
	own, err := h.r.Report(ctx, caller("p", access.SandboxesRead), Request{})
	if err != nil || len(own) != 1 || own[0].DiskSeconds != 1 {
		t.Errorf("its own: got %v, %v", own, err)
	}
	for _, r := range []Request{{Project: "q"}, {AllProjects: true}} {
		if _, err := h.r.Report(ctx, caller("p", access.SandboxesRead), r); fault.Of(err) != fault.Denied {
			t.Errorf("%+v: got %v", r, err)
		}
	}
	if _, err := h.r.Report(ctx, caller("p"), Request{}); fault.Of(err) != fault.Denied {
		t.Errorf("without a scope: got %v", err)
	}
	all, err := h.r.Report(ctx, caller("p", access.SandboxesRead, access.ServerAdmin), Request{AllProjects: true, By: []string{"project"}})
	if err != nil || len(all) != 2 || all[1].DiskSeconds != 2 {
		t.Errorf("all: got %v, %v", all, err)
	}
	for _, r := range []Request{{By: []string{"nothing"}}, {Since: h.now, Until: h.now}} {
		if _, err := h.r.Report(ctx, caller("p", access.SandboxesRead), r); fault.Of(err) != fault.Invalid {
			t.Errorf("%+v: got %v", r, err)
		}
	}
}
