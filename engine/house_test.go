// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/files"
	"sandpit.dev/engine/images"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/memory"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

// house is an engine with real neighbours: a store in a file, a host of the
// memory runtime with real agents and real commands.
type house struct {
	t      testing.TB
	dir    string
	host   *memory.Host
	store  *sqlstore.Store
	faulty *faulty
	engine *engine.Engine
	files  *files.Service
	ports  *ports.Service
	code   *code.Service
	end    func() // ends the engine's Run and waits for it; twice is fine
}

// open makes a house in dir, with whatever an earlier one left there. The
// engine is ready.
func open(t testing.TB, dir string, change ...func(*engine.Options)) *house {
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
	h := &house{t: t, dir: dir, host: host, store: st}
	h.serve(change...)
	return h
}

// serve begins the life of an engine over the house's host and store.
func (h *house) serve(change ...func(*engine.Options)) {
	h.t.Helper()
	h.faulty = &faulty{Driver: h.host.Driver()}
	o := options(h.store, h.faulty)
	o.Archives = archiveOf(h.dir)
	for _, f := range change {
		f(&o)
	}
	e, err := engine.New(o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.engine, h.files, h.ports, h.code = e, files.New(e, 0), ports.New(e), code.New(e, code.Options{Checkpoint: o.Checkpoint})
	h.end = run(h.t, e)
	h.t.Cleanup(h.end)
	if err := e.WaitReady(context.Background()); err != nil {
		h.t.Fatal(err)
	}
}

func options(st store.Store, d runtime.Driver) engine.Options {
	return engine.Options{
		Store: st, Runtimes: map[string]runtime.Driver{"memory": d}, Images: catalogue{},
		Defaults: engine.Defaults{StopGrace: 100 * time.Millisecond},
	}
}

func run(t testing.TB, e *engine.Engine) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error("Run:", err)
		}
	})
}

// restart ends the engine and begins another over the same host, as a server
// that was restarted.
func (h *house) restart(change ...func(*engine.Options)) {
	h.t.Helper()
	h.end()
	h.serve(change...)
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

func (h *house) exec(ref, shell string) engine.ExecResult {
	h.t.Helper()
	res, err := h.engine.Exec(h.t.Context(), alice, ref, engine.ExecRequest{Shell: shell}, nil)
	if err != nil {
		h.t.Fatalf("Exec %q: %v", shell, err)
	}
	return res
}

// recorded waits for what the engine has yet to write; who looks straight into
// the store has to.
func (h *house) recorded() {
	h.t.Helper()
	if err := h.engine.Recorded(context.Background()); err != nil {
		h.t.Fatal(err)
	}
}

// get returns the record, straight from the store; nil if there is none.
func (h *house) get(id sandbox.ID) *sandbox.Sandbox {
	h.t.Helper()
	h.recorded()
	var s *sandbox.Sandbox
	err := h.store.View(context.Background(), func(tx store.Tx) (err error) {
		s, err = tx.Sandboxes().Get(id)
		return err
	})
	if err != nil && !fault.Is(err, fault.NotFound) {
		h.t.Fatal(err)
	}
	return s
}

// events returns all events of a sandbox ("": of all), oldest first, straight
// from the store.
func (h *house) events(id sandbox.ID) []*sandbox.Event {
	h.t.Helper()
	h.recorded()
	var evs []*sandbox.Event
	err := h.store.View(context.Background(), func(tx store.Tx) (err error) {
		evs, _, err = tx.Events().List(store.EventQuery{Sandbox: id, Oldest: true, Limit: store.MaxPage})
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return evs
}

func types(evs []*sandbox.Event) []sandbox.EventType {
	var ts []sandbox.EventType
	for _, ev := range evs {
		ts = append(ts, ev.Type)
	}
	return ts
}

// wantEvents checks the types of a sandbox's events, in order.
func (h *house) wantEvents(id sandbox.ID, want ...sandbox.EventType) []*sandbox.Event {
	h.t.Helper()
	evs := h.events(id)
	if got := types(evs); !slices.Equal(got, want) {
		h.t.Errorf("events: got %v, want %v", got, want)
	}
	return evs
}

// awaitBound ends a wait for what never comes, long before the bound of all tests, which would not
// say what was waited for.
const awaitBound = 2 * time.Minute

// await waits for commits until ok.
func (h *house) await(what string, ok func() bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), awaitBound)
	defer cancel()
	for {
		changed := h.store.Changed()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			h.t.Fatalf("%s: %v", what, ctx.Err())
		}
	}
}

// instances returns the ids of what the host holds.
func (h *house) instances() []sandbox.ID {
	h.t.Helper()
	handles, err := h.host.Driver().List(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	var ids []sandbox.ID
	for _, hd := range handles {
		ids = append(ids, hd.ID)
	}
	return ids
}

// nothing checks that neither a record nor an instance is there.
func (h *house) nothing() {
	h.t.Helper()
	if ids := h.instances(); len(ids) != 0 {
		h.t.Errorf("instances are left: %v", ids)
	}
	page, err := h.engine.List(context.Background(), alice, engine.SandboxesRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, s := range page.Items {
		h.t.Errorf("a record is left: %s, %s", s.ID, s.State)
	}
}

func wantCode(t testing.TB, err error, want fault.Code) {
	t.Helper()
	if got := fault.Of(err); got != want {
		t.Errorf("error: got %q (%v), want %q", got, err, want)
	}
}

var (
	alice = access.Caller{Project: "default", Actor: "alice", Via: "rest", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
	mary  = access.Caller{Project: "other", Actor: "mary", Via: "mcp", Scopes: []access.Scope{access.Admin}}
	chief = access.Caller{Project: "default", Actor: "chief", Via: "rest", Scopes: []access.Scope{access.Admin}}
)

// catalogue is two images that are there already.
type catalogue struct{}

func (catalogue) Resolve(name string) (image.Entry, error) {
	switch name {
	case "", "python", "python-3.12":
		return image.Entry{Name: "python"}, nil
	case "node":
		return image.Entry{Name: "node"}, nil
	}
	return image.Entry{}, fault.New(fault.NotFound, "there is no image %q", name)
}

func (c catalogue) Find(ctx context.Context, name string) (image.Image, error) {
	return c.Ensure(ctx, name)
}

func (c catalogue) Ensure(ctx context.Context, name string) (image.Image, error) {
	e, err := c.Resolve(name)
	if err != nil {
		return image.Image{}, err
	}
	return image.Image{Name: e.Name, Digest: "sha256:" + e.Name, Root: "/", Env: map[string]string{"IMAGE": e.Name}}, ctx.Err()
}

func (c catalogue) FindDigest(name, digest string) (image.Image, error) {
	return c.Ensure(context.Background(), name)
}

func (c catalogue) List(ctx context.Context) ([]image.Status, error) {
	img, err := c.Ensure(ctx, "python")
	return []image.Status{{Entry: image.Entry{Name: "python"}, Default: true, Allowed: true, State: image.Ready, Image: img}}, err
}

// The nouns that have packages of their own above the engine.
func (h *house) secrets() *secrets.Service { return secrets.NewService(h.engine) }
func (h *house) volumes() *volume.Service  { return volume.NewService(h.engine) }
func (h *house) images() *images.Catalogue { return images.NewCatalogue(h.engine) }
