// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package keyed_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/keyed"
	"sandpit.dev/store/sqlstore"
)

func openStore(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "records.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func run(project, key string) keyed.Request {
	return keyed.Request{Project: project, Route: "POST /x", Key: key, Hash: []byte("body"), Makes: []keyed.Kind{keyed.Process}}
}

func begin(t *testing.T, k *keyed.Keys, r keyed.Request) *keyed.Call {
	t.Helper()
	c, err := k.Begin(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// intend writes the row of a command, as the engine does before it begins one.
func intend(ctx context.Context, s store.Store, process string, fail error) error {
	return s.Update(ctx, func(tx store.Tx) error {
		ev := &sandbox.Event{Sandbox: "box", Project: "p", Type: sandbox.EventExec, At: time.Now(), ProcessID: process}
		if err := tx.Events().Append(ev); err != nil {
			return err
		}
		return fail
	})
}

func TestWhatIsMadeIsWrittenWithIt(t *testing.T) {
	k := keyed.New(openStore(t), keyed.Options{})
	s := k.Store()
	c := begin(t, k, run("p", "a"))
	no := errors.New("no")
	if err := intend(c.Context(t.Context()), s, "undone", no); !errors.Is(err, no) {
		t.Fatal(err)
	}
	c.End()
	if c = begin(t, k, run("p", "a")); c.Prior() != nil {
		t.Fatalf("a transaction that was rolled back left %+v", c.Prior())
	}
	for range 2 {
		if err := intend(t.Context(), s, "anothers", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := intend(keyed.Carry(context.Background(), c.Context(t.Context())), s, "done", nil); err != nil {
		t.Fatal(err)
	}
	c.End()
	want := []keyed.Thing{{Kind: keyed.Process, ID: "done", Sandbox: "box"}}
	c = begin(t, k, run("p", "a"))
	if diff := cmp.Diff(want, c.Made()); c.Prior() == nil || diff != "" {
		t.Error(diff)
	}
	c.Renew()
	if err := intend(c.Context(t.Context()), s, "second", nil); err != nil {
		t.Fatal(err)
	}
	c.End()
	want[0].ID = "second"
	if diff := cmp.Diff(want, begin(t, k, run("p", "a")).Made()); diff != "" {
		t.Error(diff)
	}
}

func TestAnAnswerIsKeptByTheNextServer(t *testing.T) {
	db := openStore(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, answer := range []string{"first", "second"} {
		k := keyed.New(db, keyed.Options{})
		c := begin(t, k, run("p", "a"))
		c.Answer(201, "A: b\n", []byte(answer))
		c.End()
		again := begin(t, k, run("p", "a")) // before it is written
		if p := again.Prior(); p == nil || p.Status != 201 || string(p.Answer) != "first" || p.Header != "A: b\n" {
			t.Errorf("got %+v", p)
		}
		again.End()
		if err := k.Run(ctx); err != nil { // the end of a server writes what is left
			t.Fatal(err)
		}
	}
	k := keyed.New(db, keyed.Options{})
	if p := begin(t, k, run("p", "a")).Prior(); p == nil || string(p.Answer) != "first" {
		t.Errorf("got %+v", p)
	}
	c := begin(t, k, run("p", "large"))
	c.Answer(200, "", make([]byte, store.MaxKeptAnswer+1))
	c.End()
	if p := begin(t, k, run("p", "large")).Prior(); p == nil || p.Status != 200 || p.Answer != nil {
		t.Errorf("of one that is too large: got %+v", p)
	}
}

// fullStore is a store whose disk is full, and that counts its updates.
type fullStore struct {
	store.Store
	full    bool
	updates int
}

func (s *fullStore) Room() error {
	if s.full {
		return fault.NoSpace(fault.RecordsDisk, nil, "the disk is full")
	}
	return nil
}

func (s *fullStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	s.updates++
	return s.Store.Update(ctx, fn)
}

// TestAnswersTakeNoReserve keeps answers in memory while the disk of the records is full: what
// the store takes then is for stops and deletes.
func TestAnswersTakeNoReserve(t *testing.T) {
	db := &fullStore{Store: openStore(t), full: true}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	k := keyed.New(db, keyed.Options{})
	c := begin(t, k, run("p", "a"))
	c.Answer(201, "", make([]byte, store.MaxKeptAnswer))
	c.End()
	if err := k.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if db.updates > 0 {
		t.Errorf("%d updates while the disk is full", db.updates)
	}
	c = begin(t, k, run("p", "a"))
	if p := c.Prior(); p == nil || p.Status != 201 || len(p.Answer) != store.MaxKeptAnswer {
		t.Errorf("a request that is repeated meanwhile got %+v", p)
	}
	c.End()
	db.full = false
	if err := k.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if p := begin(t, keyed.New(db, keyed.Options{}), run("p", "a")).Prior(); p == nil || p.Status != 201 {
		t.Errorf("after there is room again, the next server has %+v", p)
	}
}

func TestAKeyIsOfOneRequest(t *testing.T) {
	now := time.Now()
	k := keyed.New(openStore(t), keyed.Options{Now: func() time.Time { return now }})
	c := begin(t, k, run("p", "a"))
	if _, err := k.Begin(t.Context(), run("p", "a")); !fault.Is(err, fault.Conflict) || fault.As(err).Retry <= 0 {
		t.Errorf("one that is served: got %v", err)
	}
	other := run("p", "a")
	other.Hash = []byte("other")
	if _, err := k.Begin(t.Context(), other); !fault.Is(err, fault.Invalid) {
		t.Errorf("another body: got %v", err)
	}
	c.Answer(200, "", []byte("x"))
	c.End()
	if _, err := k.Begin(t.Context(), other); !fault.Is(err, fault.Invalid) {
		t.Errorf("another body, after its end: got %v", err)
	}
	route, owner := run("p", "a"), run("p", "a")
	route.Route, owner.Owner = "POST /y", "o"
	for _, r := range []keyed.Request{run("p", "b"), run("q", "a"), route, owner} {
		if p := begin(t, k, r).Prior(); p != nil {
			t.Errorf("%+v: got %+v", r, p)
		}
	}
	now = now.Add(keyed.Life)
	if p := begin(t, k, run("p", "a")).Prior(); p != nil {
		t.Errorf("after its life: got %+v", p)
	}
}

func TestRunRemovesWhatHasExpired(t *testing.T) {
	db, now := openStore(t), time.Now()
	k := keyed.New(db, keyed.Options{Now: func() time.Time { return now }})
	const n = 1100 // more than one transaction removes
	for i := range n {
		c := begin(t, k, run("p", strings.Repeat("a", i%200)+string(rune('a'+i/200))))
		if err := intend(c.Context(t.Context()), k.Store(), "x", nil); err != nil {
			t.Fatal(err)
		}
		c.End()
	}
	now = now.Add(keyed.Life + time.Second)
	count := func() (n int) {
		if err := db.View(t.Context(), func(tx store.Tx) (err error) { n, err = tx.Requests().Count("p"); return err }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := count(); got != n {
		t.Fatalf("got %d, want %d", got, n)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- k.Run(ctx) }()
	for count() > 0 {
		<-time.After(time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestCheckKey(t *testing.T) {
	for key, ok := range map[string]bool{
		"": false, "a": true, " ~": true, strings.Repeat("a", 255): true, strings.Repeat("a", 256): false, "a\n": false, "é": false,
	} {
		if err := keyed.CheckKey("f", key); (err == nil) != ok {
			t.Errorf("%q: got %v", key, err)
		}
	}
}
