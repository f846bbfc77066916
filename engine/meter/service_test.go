// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"path/filepath"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/memory"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStatsAreOfWhatIsUpAndOfNobodyElses(t *testing.T) {
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "sandpit.db")})
	must(t, err)
	defer func() { _ = db.Close() }()
	host, err := memory.Open(t.TempDir(), memory.Options{})
	must(t, err)
	defer func() { _ = host.Close() }()
	driver := host.Driver()
	now := time.Now().UTC().Truncate(time.Microsecond)
	box := &sandbox.Sandbox{ID: sandbox.NewID(), Project: "p", Key: "work", Runtime: "memory", State: sandbox.Running, CreatedAt: now, UpdatedAt: now, StartedAt: now, RunningSince: now}
	inst, err := driver.Create(t.Context(), runtime.Spec{ID: box.ID})
	must(t, err)
	must(t, db.Update(t.Context(), func(tx store.Tx) error { return tx.Sandboxes().Insert(box) }))
	p, err := agent.NewClient(inst.Dial).Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "echo begun; while :; do :; done", Timeout: time.Minute})
	must(t, err)
	defer func() { _ = p.Close() }()
	_, err = p.Next(t.Context())
	must(t, err)

	s := New(db, map[string]runtime.Driver{"memory": driver}, Options{Now: func() time.Time { return now }})
	own := access.Caller{Project: "p", Scopes: []access.Scope{access.SandboxesRead}}
	for n := 0; ; n++ { // until the loop is seen to run
		now = now.Add(time.Minute)
		must(t, s.Round(t.Context()))
		got, err := s.Stats(t.Context(), own, "work")
		must(t, err)
		if got.Now == nil || len(got.History) != min(n+1, minutes) {
			t.Fatalf("round %d: got %+v", n, got)
		}
		if got.Now.CPU > 0 && got.Now.Tasks > 0 && got.Now.MemoryBytes > 0 {
			break
		}
	}
	for _, ref := range []string{"work", string(box.ID)} {
		if _, err := s.Stats(t.Context(), access.Caller{Project: "q", Scopes: own.Scopes}, ref); fault.Of(err) != fault.NotFound {
			t.Errorf("another project's %s: got %v", ref, err)
		}
	}
	if _, err := s.Stats(t.Context(), access.Caller{Project: "p"}, "work"); fault.Of(err) != fault.Denied {
		t.Errorf("without a scope: got %v", err)
	}
	if _, err := s.All(t.Context(), own, true); fault.Of(err) != fault.Denied {
		t.Errorf("all projects: got %v", err)
	}
	if all, err := s.All(t.Context(), own, false); err != nil || len(all.Items) != 1 || all.Items[0].Now == nil || all.Host != nil {
		t.Errorf("its own: got %+v, %v", all, err)
	}

	must(t, inst.Stop(t.Context(), 0))
	box.State, box.RunningSince = sandbox.Stopped, time.Time{}
	must(t, db.Update(t.Context(), func(tx store.Tx) error { return tx.Sandboxes().Update(box) }))
	must(t, s.Round(t.Context()))
	if got, err := s.Stats(t.Context(), own, "work"); err != nil || got.Now != nil || len(got.History) > 0 || len(s.known) > 0 {
		t.Errorf("a stopped one: got %+v, %v; %d are kept", got, err, len(s.known))
	}
}
