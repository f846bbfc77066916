// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package projects_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/project"
	"sandpit.dev/engine/usage"
	"sandpit.dev/fault"
	"sandpit.dev/projects"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/quota"
	"sandpit.dev/store/sqlstore"
)

// ledger is a store whose use is added up and held to quotas, as the daemon makes it, with a clock that the test sets.
type ledger struct {
	t    *testing.T
	path string
	now  time.Time
	db   *sqlstore.Store
	used *usage.Recorder
	s    store.Store
	p    *projects.Service
	n    int
}

// budgeted begins half an hour before the last hour of a month.
func budgeted(t *testing.T) *ledger {
	l := &ledger{t: t, path: filepath.Join(t.TempDir(), "records.db"), now: time.Date(2026, 2, 28, 22, 30, 0, 0, time.UTC)}
	l.open()
	t.Cleanup(func() { _ = l.db.Close() })
	return l
}

func (l *ledger) open() {
	l.t.Helper()
	var err error
	if l.db, err = sqlstore.Open(l.t.Context(), sqlstore.Options{Path: l.path}); err != nil {
		l.t.Fatal(err)
	}
	clock := func() time.Time { return l.now }
	k, err := quota.Open(l.t.Context(), l.db, quota.Options{Now: clock}, access.DefaultProject)
	if err != nil {
		l.t.Fatal(err)
	}
	l.used = usage.New(k.Store(), usage.Options{Now: clock})
	l.s = l.used.Store()
	l.p = projects.New(l.s, k, nil)
}

// reopen is another server on the same records; the one before has not been told.
func (l *ledger) reopen() {
	l.t.Helper()
	if err := l.db.Close(); err != nil {
		l.t.Fatal(err)
	}
	l.open()
}

func (l *ledger) make(cpu float64, memoryMB int) (*sandbox.Sandbox, error) {
	s := &sandbox.Sandbox{ID: sandbox.NewID(), Project: "web", Runtime: "memory", Limits: sandbox.Limits{CPU: cpu, MemoryMB: memoryMB, DiskMB: 10, Pids: 10}, State: sandbox.Creating, CreatedAt: l.now, UpdatedAt: l.now}
	return s, l.s.Update(l.t.Context(), func(tx store.Tx) error { return tx.Sandboxes().Insert(s) })
}

// become changes a state as the engine does; after a refusal nothing is changed.
func (l *ledger) become(s *sandbox.Sandbox, state sandbox.State) error {
	next := *s
	next.State, next.UpdatedAt = state, l.now
	next.RunMeter(s.State)
	err := l.s.Update(l.t.Context(), func(tx store.Tx) error { return tx.Sandboxes().Update(&next) })
	if err == nil {
		*s = next
	}
	return err
}

func (l *ledger) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *ledger) begin(s *sandbox.Sandbox) error {
	l.n++
	return l.s.Update(l.t.Context(), func(tx store.Tx) error {
		return tx.Events().Append(&sandbox.Event{Project: s.Project, Sandbox: s.ID, Type: sandbox.EventExec, ProcessID: fmt.Sprint("p", l.n), Via: "rest", At: l.now})
	})
}

func (l *ledger) spent(r project.Resource) float64 {
	l.t.Helper()
	p, err := l.p.Get(l.t.Context(), admin(), "web")
	l.must(err)
	return p.Use[r]
}

func (l *ledger) refused(what string, err error, parts ...string) {
	l.t.Helper()
	e := fault.As(err)
	if !fault.Is(err, fault.Exhausted) {
		l.t.Fatalf("%s: got %v, want Exhausted", what, err)
	}
	for _, part := range parts {
		if !strings.Contains(e.Message+" "+e.Remedy, part) {
			l.t.Errorf("%s: %q, %q does not name %q", what, e.Message, e.Remedy, part)
		}
	}
}

func TestABudgetEndsWhatWouldRun(t *testing.T) {
	l := budgeted(t)
	_, err := l.p.Create(t.Context(), admin(), "web", map[string]float64{"cpu_seconds_per_month": 200, "memory_gib_seconds_per_month": 1000})
	l.must(err)
	s, err := l.make(2, 512)
	l.must(err)
	l.must(l.become(s, sandbox.Running))
	stopped, err := l.make(1, 512)
	l.must(err)
	l.must(l.become(stopped, sandbox.Running))
	l.must(l.become(stopped, sandbox.Stopping))
	l.must(l.become(stopped, sandbox.Stopped))
	l.now = l.now.Add(99 * time.Second)
	l.must(l.begin(s))
	if got := l.spent(project.CPUSeconds); got != 198 {
		t.Errorf("used %v seconds of processors, want 198", got)
	}
	if got := l.spent(project.MemorySeconds); got != 49.5 {
		t.Errorf("used %v GiB-seconds, want 49.5", got)
	}
	l.now = l.now.Add(time.Second)
	_, err = l.make(1, 512)
	l.refused("a create", err, "web", "cpu_seconds_per_month", ": 200,", "200 are used", "2026-03-01T00:00:00Z", "project set")
	if e := fault.As(err); e.Retry != time.Hour+29*time.Minute+20*time.Second+-60*time.Second {
		t.Errorf("try again in %v", e.Retry)
	}
	l.refused("a start", l.become(stopped, sandbox.Starting), "cpu_seconds_per_month")
	l.refused("a command", l.begin(s), "cpu_seconds_per_month")
	if err := l.s.Update(t.Context(), func(tx store.Tx) error {
		return tx.Events().Append(&sandbox.Event{Project: "web", Sandbox: s.ID, Type: sandbox.EventExec, ProcessID: "own", Via: "system", At: l.now})
	}); err != nil {
		t.Errorf("what the server begins: %v", err)
	}
	other := *s
	if other.ID, other.Project, other.Key = sandbox.NewID(), "api", ""; l.s.Update(t.Context(), func(tx store.Tx) error { return tx.Sandboxes().Insert(&other) }) != nil {
		t.Error("another project is held to it")
	}

	l.reopen() // it is on record
	l.refused("a create by another server", func() error { _, err := l.make(1, 512); return err }(), "200 are used")

	l.must(l.become(s, sandbox.Pausing))
	l.must(l.become(s, sandbox.Paused))
	paused := l.spent(project.CPUSeconds)
	l.now = l.now.Add(20 * time.Minute)
	if got := l.spent(project.CPUSeconds); got != paused || got != 200 {
		t.Errorf("while it is paused %v seconds were used, want 200", got)
	}
	l.refused("a resume", l.become(s, sandbox.Resuming), "cpu_seconds_per_month")
	p, err := l.p.Change(t.Context(), admin(), "web", map[string]float64{"cpu_seconds_per_month": 260})
	l.must(err)
	if left, ok := p.Left(project.CPUSeconds); !ok || left != 60 {
		t.Errorf("with 60 more, left are %v", left)
	}
	l.must(l.become(s, sandbox.Resuming))
	l.must(l.become(s, sandbox.Running))
	l.now = l.now.Add(time.Minute)
	l.refused("a command", l.begin(s), "cpu_seconds_per_month", "320 are used")

	l.now = time.Date(2026, 3, 1, 0, 0, 9, 0, time.UTC) // it runs on
	l.must(l.begin(s))
	if got := l.spent(project.CPUSeconds); got != 18 {
		t.Errorf("in the next month %v seconds were used, want 18", got)
	}
	l.must(l.become(stopped, sandbox.Starting))
}

// What is left is what the sums of use say, whatever happens meanwhile, over the end of a month and other servers.
func TestABudgetIsWhatUsageAddsUp(t *testing.T) {
	l := budgeted(t)
	_, err := l.p.Create(t.Context(), admin(), "web", map[string]float64{"cpu_seconds_per_month": 60000, "memory_gib_seconds_per_month": 1e12})
	l.must(err)
	dice := rand.New(rand.NewPCG(23, 6))
	var all []*sandbox.Sandbox
	refused, did := 0, 0
	for step := range 1500 {
		l.now = l.now.Add(time.Duration(dice.IntN(12_000)) * time.Millisecond)
		begin, _ := project.Month(l.now)
		sums, err := l.used.Sum(t.Context(), store.UsageQuery{Project: "web", Since: begin})
		l.must(err)
		var cpu, memory float64
		for _, u := range sums {
			cpu, memory = cpu+u.CPUSeconds, memory+u.MemorySeconds
		}
		if got := l.spent(project.CPUSeconds); math.Abs(got-cpu) > 1e-3 {
			t.Fatalf("step %d: used %v seconds of processors, usage says %v", step, got, cpu)
		}
		if got := l.spent(project.MemorySeconds); math.Abs(got-memory) > 1e-3 {
			t.Fatalf("step %d: used %v GiB-seconds, usage says %v", step, got, memory)
		}
		// What is refused is what finds the budget used up, and nothing else.
		runs := func(err error) {
			if spent := cpu >= 60000; spent != fault.Is(err, fault.Exhausted) && math.Abs(cpu-60000) > 1e-3 || err != nil && !spent {
				t.Fatalf("step %d: %v of 60000 seconds are used, and got %v", step, cpu, err)
			}
			if err != nil {
				refused++
			} else {
				did++
			}
		}
		switch kind := dice.IntN(6); {
		case kind == 0 || len(all) < 5:
			s, err := l.make(float64(1+dice.IntN(20))/7, 100+dice.IntN(1000))
			if runs(err); err == nil {
				l.must(l.become(s, sandbox.Running))
				all = append(all, s)
			}
			if len(all) == 0 {
				t.Fatal("none was made")
			}
		case kind == 1:
			runs(l.begin(all[dice.IntN(len(all))]))
		case kind == 5 && dice.IntN(10) == 0:
			l.reopen()
		case kind == 5 && dice.IntN(10) == 0:
			l.must(l.used.AddTime(t.Context()))
		default:
			switch s := all[dice.IntN(len(all))]; s.State {
			case sandbox.Running:
				l.must(l.become(s, []sandbox.State{sandbox.Paused, sandbox.Stopped}[dice.IntN(2)]))
			default:
				runs(l.become(s, sandbox.Running))
			}
		}
	}
	if l.now.Month() != time.March || refused < 20 || did < 200 {
		t.Errorf("at %v %d things were refused and %d done, want more", l.now, refused, did)
	}
}
