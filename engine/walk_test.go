// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// ledger is a store that sees every change of a state as it is committed, and holds
// it to the table: each arrow is one of it, and each change that is no intent has
// an event in its own transaction.
type ledger struct {
	store.Store
	t testing.TB

	mu     sync.Mutex
	states map[sandbox.ID]sandbox.State
	arrows map[[2]sandbox.State]int
}

func (l *ledger) Update(ctx context.Context, fn func(store.Tx) error) error {
	var tx *ledgerTx
	err := l.Store.Update(ctx, func(real store.Tx) error {
		tx = &ledgerTx{Tx: real, changed: make(map[sandbox.ID]sandbox.State), told: make(map[sandbox.ID]bool)}
		return fn(tx)
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, to := range tx.changed {
		from := l.states[id]
		if from == to {
			continue
		}
		l.states[id] = to
		l.arrows[[2]sandbox.State{from, to}]++
		if from != "" && !from.CanBecome(to) {
			l.t.Errorf("%s became %s from %s, which is not in the table", id, to, from)
		}
		if (!to.Intent() || to == sandbox.Creating) && !tx.told[id] {
			l.t.Errorf("%s became %s from %s without an event", id, to, from)
		}
	}
	return nil
}

type ledgerTx struct {
	store.Tx
	changed map[sandbox.ID]sandbox.State
	told    map[sandbox.ID]bool
}

func (tx *ledgerTx) Sandboxes() store.Sandboxes { return ledgerSandboxes{tx.Tx.Sandboxes(), tx} }
func (tx *ledgerTx) Events() store.Events       { return ledgerEvents{tx.Tx.Events(), tx} }

type ledgerSandboxes struct {
	store.Sandboxes
	tx *ledgerTx
}

func (s ledgerSandboxes) Insert(r *sandbox.Sandbox) error {
	s.tx.changed[r.ID] = r.State
	return s.Sandboxes.Insert(r)
}

func (s ledgerSandboxes) Update(r *sandbox.Sandbox) error {
	s.tx.changed[r.ID] = r.State
	return s.Sandboxes.Update(r)
}

func (s ledgerSandboxes) Delete(id sandbox.ID) error {
	s.tx.changed[id] = sandbox.Deleted
	return s.Sandboxes.Delete(id)
}

type ledgerEvents struct {
	store.Events
	tx *ledgerTx
}

func (e ledgerEvents) Append(ev *sandbox.Event) error {
	e.tx.told[ev.Sandbox] = true
	return e.Events.Append(ev)
}

// TestARandomWalk does random things to a few sandboxes, while the driver and the store
// fail now and then and the server ends in the middle, and holds all that happens to the
// state table. Whenever nothing fails, record and driver agree; and what was written
// and acknowledged is there whenever the sandbox is. SANDPIT_TEST_WALK is how many
// steps to take, SANDPIT_TEST_SEED where to begin.
func TestARandomWalk(t *testing.T) {
	number := func(name string, def uint64) uint64 {
		if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
			return n
		}
		return def
	}
	steps, seed := number("SANDPIT_TEST_WALK", 250), number("SANDPIT_TEST_SEED", rand.Uint64())
	t.Logf("SANDPIT_TEST_SEED=%d", seed)
	w := &walk{t: t, rand: rand.New(rand.NewPCG(seed, 0)), written: make(map[string]string)}
	w.ledger = &ledger{t: t, states: make(map[sandbox.ID]sandbox.State), arrows: make(map[[2]sandbox.State]int)}
	w.h = open(t, t.TempDir(), w.options)
	for range steps {
		w.step()
		if t.Failed() {
			t.FailNow()
		}
	}
	w.calm()
	// Of the table's arrows these come in any walk.
	for _, a := range [][2]sandbox.State{
		{sandbox.Creating, sandbox.Running}, {sandbox.Running, sandbox.Pausing}, {sandbox.Pausing, sandbox.Paused},
		{sandbox.Paused, sandbox.Resuming}, {sandbox.Resuming, sandbox.Running}, {sandbox.Running, sandbox.Stopping},
		{sandbox.Stopping, sandbox.Stopped}, {sandbox.Stopped, sandbox.Starting}, {sandbox.Starting, sandbox.Running},
	} {
		if w.ledger.arrows[a] == 0 {
			t.Errorf("nothing ever became %s from %s", a[1], a[0])
		}
	}
	t.Log(len(w.ledger.arrows), "arrows of the table were taken")
}

type walk struct {
	t       *testing.T
	rand    *rand.Rand
	h       *house
	ledger  *ledger
	store   *stubborn
	written map[string]string // what a command has written, by key
}

func (w *walk) options(o *engine.Options) {
	w.store = &stubborn{Store: o.Store}
	w.ledger.Store = w.store
	o.Store = w.ledger
}

// step is one thing that happens.
func (w *walk) step() {
	key := "key-" + strconv.Itoa(w.rand.IntN(3))
	switch n := w.rand.IntN(100); {
	case n < 8: // the store refuses what comes after a few commits
		left := w.rand.IntN(4)
		w.t.Log("the store takes", left, "more")
		w.store.after(left)
	case n < 16: // the driver refuses some call
		call := []string{"create", "open", "start", "dial", "stop", "remove", "pause", "resume", "resize", "rollback"}[w.rand.IntN(10)]
		if w.t.Log("the driver fails", call); w.rand.IntN(2) == 0 {
			w.h.faulty.set(failing(call), nil)
		} else {
			w.h.faulty.set(nil, failing(call))
		}
	case n < 20:
		w.t.Log("a restart")
		w.heal()
		w.h.restart(w.options)
	case n < 24: // whatever fails, it ends and begins anew without failures
		w.t.Log("an end, and a new begin")
		w.h.end()
		w.heal()
		w.h.serve(w.options)
	case n < 34:
		w.t.Log("calm")
		w.calm()
	default:
		w.verb(key)
	}
}

func (w *walk) heal() {
	w.store.heal()
	w.h.faulty.set(nil, nil)
}

// verb does something to the sandbox of a key.
func (w *walk) verb(key string) {
	ctx, e := w.t.Context(), w.h.engine
	var err error
	verb := w.rand.IntN(15)
	defer func() { w.t.Logf("verb %d of %s: %v", verb, key, err) }()
	switch verb {
	case 0, 1, 2:
		_, _, err = e.Create(ctx, alice, engine.CreateRequest{Key: key, AutoResume: ptr(w.rand.IntN(2) == 0)})
	case 3:
		_, err = e.Start(ctx, alice, key)
	case 4:
		_, err = e.Stop(ctx, alice, key)
	case 5, 6:
		_, err = e.Pause(ctx, alice, key)
	case 7, 8:
		_, err = e.Resume(ctx, alice, key)
	case 9:
		_, err = e.Update(ctx, alice, key, update.Patch{CPU: ptr(float64(1 + w.rand.IntN(8)))})
	case 10:
		if w.rand.IntN(3) == 0 {
			err = e.Delete(ctx, alice, key)
			delete(w.written, key) // done, or on its way
		}
	case 11:
		if _, err = e.Reset(ctx, alice, key); err == nil || !fault.Is(err, fault.NotFound) {
			delete(w.written, key)
		}
	case 12:
		_, err = e.Restart(ctx, alice, key)
	default:
		text := strconv.FormatUint(w.rand.Uint64(), 36)
		var res engine.ExecResult
		res, err = e.Exec(ctx, alice, key, engine.ExecRequest{Shell: "echo " + text + " > file.new && mv file.new file"}, nil)
		if err == nil && res.ExitCode == 0 {
			w.written[key] = text + "\n"
		} else {
			delete(w.written, key) // it may be either
		}
	}
	switch fault.Of(err) {
	case "", fault.NotFound, fault.State, fault.Unavailable:
	default:
		w.t.Errorf("an odd error: %v", err)
	}
}

// calm lets nothing fail, and looks whether all is as the records say.
func (w *walk) calm() {
	w.heal()
	h := w.h
	p, err := h.engine.List(context.Background(), alice, engine.SandboxesRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	there := make(map[string]bool)
	for _, s := range p.Items {
		// Any verb reconciles it first; this one changes nothing else.
		_, err := h.engine.Update(context.Background(), alice, string(s.ID), update.Patch{Metadata: &map[string]string{"n": strconv.Itoa(w.rand.Int())}})
		if fault.Is(err, fault.NotFound) {
			continue // it was being deleted, or made
		}
		if err != nil {
			w.t.Fatalf("settling %s, which is %s: %v", s.Key, s.State, err)
		}
		there[s.Key] = true
		h.agree(h.get(s.ID))
	}
	for key, text := range w.written {
		if !there[key] {
			w.t.Errorf("%s is gone", key)
			continue
		}
		if _, err := h.engine.Start(context.Background(), alice, key); err != nil {
			w.t.Fatalf("starting %s: %v", key, err)
		}
		if res := h.exec(key, "cat file"); string(res.Stdout) != text {
			w.t.Errorf("%s holds %q, want %q", key, res.Stdout, text)
		}
	}
}
