// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// The result is committed behind the answer; whoever could tell waits for it.
func TestAnAnswerBeforeItsRecord(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.end()
	commit := make(chan struct{})
	var held atomic.Bool
	h.serve(func(o *engine.Options) {
		o.Checkpoint = func(name string) {
			if name == "exec.answered" && held.Load() {
				<-commit
			}
		}
	})
	s, other := h.create(engine.CreateRequest{Key: "box"}), h.create(engine.CreateRequest{Key: "other"})
	held.Store(true)
	h.exec("box", "exit 3") // it is answered, although the commit hangs
	h.exec("box", "exit 4")

	verbs := map[string]func(context.Context) error{
		"Get": func(ctx context.Context) error { _, err := h.engine.Get(ctx, alice, "box"); return err },
		"List": func(ctx context.Context) error {
			_, err := h.engine.List(ctx, alice, engine.SandboxesRequest{})
			return err
		},
		"Activity": func(ctx context.Context) error {
			_, _, err := h.engine.Activity(ctx, alice, "box", engine.ActivityRequest{})
			return err
		},
		"Create": func(ctx context.Context) error {
			_, _, err := h.engine.Create(ctx, alice, engine.CreateRequest{Key: "box"})
			return err
		},
		"Delete": func(ctx context.Context) error { return h.engine.Delete(ctx, alice, "box") },
	}
	for name, verb := range verbs {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := verb(ctx); !fault.Is(err, fault.Timeout) {
			t.Errorf("%s before the result is on record: got %v, want that it waits", name, err)
		}
		cancel()
	}
	if _, err := h.engine.Get(t.Context(), alice, string(other.ID)); err != nil {
		t.Error("a sandbox that has nothing to do with it:", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := h.engine.List(ctx, mary, engine.SandboxesRequest{}); err != nil {
		t.Error("a project that has nothing to do with it:", err)
	}

	close(commit)
	// The delete was not taken back: it goes on, after the results.
	h.await("the delete", func() bool { return h.get(s.ID) == nil })
	for i, ev := range h.events(s.ID)[2:4] {
		if !ev.Done || ev.ExitCode != 3+i || ev.Cause != sandbox.CauseNone {
			t.Errorf("event: %+v", ev)
		}
	}
}

// A delete completes the rows of what it cuts off, and is not done then.
func TestAnOutcomeOfWhatADeleteCutsOff(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.end()
	var record func()
	h.serve(func(o *engine.Options) {
		o.Checkpoint = func(name string) {
			if name == "delete.done" {
				record()
			}
		}
	})
	begin := func() (*sandbox.Sandbox, *engine.Use, *sandbox.Event) {
		s := h.create(engine.CreateRequest{Key: "box"})
		u, err := h.engine.Use(t.Context(), alice, access.SandboxesWrite, "box", "code")
		if err != nil {
			t.Fatal(err)
		}
		ev, err := u.NewEvent(sandbox.EventExec)
		if err != nil {
			t.Fatal(err)
		}
		ev.ProcessID = sandbox.NewProcessID()
		if err := u.Begin(t.Context(), ev, nil); err != nil {
			t.Fatal(err)
		}
		return s, u, ev
	}
	s, u, ev := begin()
	nothing := func(store.Tx) error { return nil }
	record = func() {
		if got := h.get(s.ID); got == nil || got.State != sandbox.Deleting {
			t.Errorf("while it is deleted: %+v", got)
		}
		if err := u.Record(t.Context(), ev, time.Second, nothing); err != nil {
			t.Errorf("while it is deleted: %v", err)
		}
	}
	if err := h.engine.Delete(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	if err := u.Record(t.Context(), ev, time.Second, nothing); err != nil {
		t.Errorf("once it is deleted: %v", err)
	}
	u.End()

	_, u, ev = begin()
	defer u.End()
	if err := u.Record(t.Context(), ev, time.Second, nothing); err != nil {
		t.Error(err)
	}
	wantCode(t, u.Record(t.Context(), ev, time.Second, nothing), fault.Conflict)
}

// refusing is a store that takes nothing while it is full.
type refusing struct {
	store.Store
	full atomic.Bool
}

func (r *refusing) Update(ctx context.Context, fn func(store.Tx) error) error {
	if r.full.Load() {
		return fault.NoSpace(fault.RecordsDisk, nil, "the disk that holds the records is full")
	}
	return r.Store.Update(ctx, fn)
}

// The agent has the command before the intent is committed, and begins it only
// after that.
func TestACommandThatCannotBeRecordedIsNotRun(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.end()
	var st *refusing
	h.serve(func(o *engine.Options) { st = &refusing{Store: o.Store}; o.Store = st })
	s := h.create(engine.CreateRequest{Key: "box"})
	st.full.Store(true)
	_, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "touch ran"}, nil)
	wantCode(t, err, fault.Full)
	st.full.Store(false)
	h.exec("box", "test ! -e ran")
	h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventExec)
	var recs []sandbox.Process
	if recs, err = h.engine.Processes(t.Context(), alice, "box"); err != nil || len(recs) != 1 {
		t.Errorf("the agent knows of %+v, %v; want the second command only", recs, err)
	}
}
