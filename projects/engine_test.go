// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package projects_test

import (
	"fmt"
	"sync"
	"testing"

	"sandpit.dev/access/project"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/projects"
	"sandpit.dev/sandbox"
)

// served is an engine with real agents, and the projects beside it.
func served(t *testing.T) (*enginetest.Server, *projects.Service) {
	t.Helper()
	s := enginetest.Start(t, t.TempDir())
	return s, projects.New(s.Keys.Store(), s.Quotas, nil)
}

func quotas(t *testing.T, s *projects.Service, name string, q map[string]float64) {
	t.Helper()
	_, err := s.Change(t.Context(), admin(), name, q)
	if fault.Is(err, fault.NotFound) {
		_, err = s.Create(t.Context(), admin(), name, q)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func use(t *testing.T, s *projects.Service, name string) projects.Status {
	t.Helper()
	p, err := s.Get(t.Context(), admin(), name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// atOnce calls fn so many times at once, and returns how many succeeded. The others have to be Exhausted.
func atOnce(t *testing.T, n int, fn func(i int) error) (ok int) {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = fn(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err == nil {
			ok++
		} else if !fault.Is(err, fault.Exhausted) {
			t.Errorf("got %v, want Exhausted", err)
		}
	}
	return ok
}

func TestAThousandCreatesAgainstAQuotaOfAHundredGiveAHundred(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a hundred agents")
	}
	s, p := served(t)
	quotas(t, p, "web", map[string]float64{"sandboxes": 100})
	made := atOnce(t, 1000, func(int) error {
		_, _, err := s.Engine.Create(t.Context(), of("web"), engine.CreateRequest{})
		return err
	})
	if got := use(t, p, "web").Use[project.Sandboxes]; made != 100 || got != 100 {
		t.Errorf("%d were made, %v are on record, want 100", made, got)
	}
	s.Restart()
	_, _, err := s.Engine.Create(t.Context(), of("web"), engine.CreateRequest{})
	if !fault.Is(err, fault.Exhausted) {
		t.Errorf("after a restart: got %v", err)
	}
}

// Every verb that makes a sandbox, or has one run again, stands at the same bound.
func TestVerbsAtTheBound(t *testing.T) {
	s, p := served(t)
	ctx, web := t.Context(), of("web")
	quotas(t, p, "web", map[string]float64{"running": 8})
	all := make([]string, 6)
	for i := range all {
		b, _, err := s.Engine.Create(ctx, web, engine.CreateRequest{Key: fmt.Sprint("box-", i)})
		if err != nil {
			t.Fatal(err)
		}
		all[i] = string(b.ID)
	}
	snap, err := s.Engine.CreateSnapshot(ctx, web, all[0], engine.SnapshotRequest{Name: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range all[2:] { // two run
		if _, err := s.Engine.Stop(ctx, web, ref); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var made []sandbox.ID
	keep := func(err error, all ...*sandbox.Sandbox) error {
		mu.Lock()
		defer mu.Unlock()
		for _, b := range all {
			if err == nil {
				made = append(made, b.ID)
			}
		}
		return err
	}
	ok := atOnce(t, 40, func(i int) error {
		switch i % 5 {
		case 0:
			b, _, err := s.Engine.Create(ctx, web, engine.CreateRequest{})
			return keep(err, b)
		case 1:
			all, err := s.Engine.Fork(ctx, web, all[0], engine.ForkRequest{})
			return keep(err, all...)
		case 2:
			b, _, err := s.Engine.Create(ctx, web, engine.CreateRequest{From: string(snap.ID)})
			return keep(err, b)
		case 3:
			_, err := s.Engine.Start(ctx, web, all[2+i/5%4])
			return err
		}
		_, err := s.Engine.Update(ctx, web, all[1], update.Patch{Key: new(fmt.Sprint("renamed-", i))})
		if err != nil {
			t.Errorf("a rename: %v", err)
		}
		return err
	})
	p8 := use(t, p, "web")
	if p8.Use[project.Running] != 8 {
		t.Errorf("%d calls succeeded, %v run, want 8", ok, p8.Use[project.Running])
	}
	// The bound is lowered: what runs goes on, can be used, stopped, and deleted.
	quotas(t, p, "web", map[string]float64{"running": 1})
	if _, err := s.Engine.Exec(ctx, web, all[0], engine.ExecRequest{Shell: "true"}, nil); err != nil {
		t.Errorf("a command in one that runs: %v", err)
	}
	if _, err := s.Engine.Rollback(ctx, web, all[0], "kept"); err != nil {
		t.Errorf("a rollback of one that runs: %v", err)
	}
	for _, id := range made {
		if err := s.Engine.Delete(ctx, web, string(id)); err != nil {
			t.Error(err)
		}
	}
}
