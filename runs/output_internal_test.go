// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"testing"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// lateStore commits, and has the caller's context end before it says so. It keeps the events
// of runs, and nothing else.
type lateStore struct {
	store.Store
	end    context.CancelFunc
	events []string
}

func (*lateStore) Room() error { return nil }

func (s *lateStore) Update(_ context.Context, fn func(store.Tx) error) error {
	defer s.end()
	return fn(lateTx{late: s})
}

type lateTx struct {
	store.Tx
	late *lateStore
}

func (t lateTx) Runs() store.Runs { return lateRuns{late: t.late} }

type lateRuns struct {
	store.Runs
	late *lateStore
}

func (lateRuns) Update(*sandbox.Run) error                            { return nil }
func (lateRuns) UpdateCommand(string, int, *sandbox.RunCommand) error { return nil }
func (r lateRuns) Append(_ string, ev *sandbox.RunEvent) error {
	r.late.events = append(r.late.events, string(ev.Data))
	return nil
}

// The server ends while output is written: what was written is not written again by the last flush.
func TestOutputIsWrittenOnceWhereTheContextEndsMeanwhile(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	st := &lateStore{end: cancel}
	w := newWorker(New(nil, st, Options{}), callerOf(&sandbox.Run{}), &sandbox.Run{Commands: make([]sandbox.RunCommand, 1)})
	o := &output{w: w, wake: make(chan struct{}, 1)}
	if err := o.add(ctx, sandbox.Frame{Stream: sandbox.Stdout, Seq: 1, Data: []byte("line 1\n")}); err != nil {
		t.Fatal(err)
	}
	_ = o.flush(ctx)
	if ctx.Err() == nil {
		t.Fatal("nothing was written: the test sees nothing")
	}
	if err := o.flush(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	if len(st.events) != 1 || w.seq != 1 || w.run.Commands[0].StdoutBytes != 7 {
		t.Errorf("got the events %q, up to %d, with %d bytes", st.events, w.seq, w.run.Commands[0].StdoutBytes)
	}
}
