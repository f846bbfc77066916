// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"sandpit.dev/access"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/fault"
	"sandpit.dev/runtime/memory"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a service with real neighbours: an engine, a store in a file, a host of the
// memory runtime with real agents and real commands.
type house struct {
	t      *testing.T
	host   *memory.Host
	store  *sqlstore.Store
	engine *engine.Engine
	code   *code.Service
	end    func() // ends the engine's Run and waits for it; twice is fine
}

// open makes a house in dir. The engine is ready.
func open(t *testing.T, dir string, change ...func(*code.Options)) *house {
	t.Helper()
	host, err := memory.Open(filepath.Join(dir, "host"), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error("closing the host:", err)
		}
	})
	st, err := sqlstore.Open(context.Background(), sqlstore.Options{Path: filepath.Join(dir, "records.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error("closing the store:", err)
		}
	})
	h := &house{t: t, host: host, store: st}
	h.serve(change...)
	return h
}

// serve begins the life of an engine over the house's host and store.
func (h *house) serve(change ...func(*code.Options)) {
	h.t.Helper()
	e, err := engine.New(enginetest.Options(h.store, h.host.Driver()))
	if err != nil {
		h.t.Fatal(err)
	}
	var o code.Options
	for _, f := range change {
		f(&o)
	}
	h.engine, h.code = e, code.New(e, o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	h.end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Error("Run:", err)
		}
	})
	h.t.Cleanup(h.end)
	if err := e.WaitReady(context.Background()); err != nil {
		h.t.Fatal(err)
	}
}

// restart ends the engine and begins another over the same host, as a server
// that was restarted.
func (h *house) restart() {
	h.t.Helper()
	h.end()
	h.serve()
}

// create makes a sandbox that has to work out.
func (h *house) create(r engine.CreateRequest) *sandbox.Sandbox {
	h.t.Helper()
	s, created, err := h.engine.Create(h.t.Context(), alice, r)
	if err != nil || !created {
		h.t.Fatalf("Create: created %v, %v", created, err)
	}
	return s
}

func (h *house) exec(ref, shell string) {
	h.t.Helper()
	if _, err := h.engine.Exec(h.t.Context(), alice, ref, engine.ExecRequest{Shell: shell}, nil); err != nil {
		h.t.Fatalf("Exec %q: %v", shell, err)
	}
}

// get returns the record.
func (h *house) get(id sandbox.ID) (s *sandbox.Sandbox) {
	h.t.Helper()
	err := h.store.View(context.Background(), func(tx store.Tx) (err error) {
		s, err = tx.Sandboxes().Get(id)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// events returns all events, oldest first, when what callers were told is in the store.
func (h *house) events() []*sandbox.Event {
	h.t.Helper()
	if _, err := h.engine.List(context.Background(), alice, engine.SandboxesRequest{}); err != nil {
		h.t.Fatal(err)
	}
	var evs []*sandbox.Event
	err := h.store.View(context.Background(), func(tx store.Tx) (err error) {
		evs, _, err = tx.Events().List(store.EventQuery{Oldest: true, Limit: store.MaxPage})
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return evs
}

// await waits for commits until ok; the test's own deadline ends a wait for what
// never comes.
func (h *house) await(what string, ok func() bool) {
	h.t.Helper()
	for {
		changed := h.store.Changed()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-h.t.Context().Done():
			h.t.Fatalf("%s: %v", what, h.t.Context().Err())
		}
	}
}

func wantCode(t *testing.T, err error, want fault.Code) {
	t.Helper()
	if got := fault.Of(err); got != want {
		t.Errorf("error: got %q (%v), want %q", got, err, want)
	}
}

var (
	alice = access.Caller{Project: "default", Actor: "alice", Via: "rest", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
	mary  = access.Caller{Project: "other", Actor: "mary", Via: "mcp", Scopes: []access.Scope{access.Admin}}
)
