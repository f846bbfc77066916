// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// unrecorded is a store that keeps no events: what is left of a commit without them. No
// server can be told to do so.
type unrecorded struct{ store.Store }

func (f unrecorded) Update(ctx context.Context, fn func(store.Tx) error) error {
	return f.Store.Update(ctx, func(tx store.Tx) error { return fn(unrecordedTx{tx}) })
}

type unrecordedTx struct{ store.Tx }

func (t unrecordedTx) Events() store.Events { return unrecordedEvents{t.Tx.Events()} }

type unrecordedEvents struct{ store.Events }

func (unrecordedEvents) Append(e *sandbox.Event) error { e.Seq = 1; return nil }

func (unrecordedEvents) Finish(e *sandbox.Event) error { e.Seq, e.Done = 1, true; return nil }

// BenchmarkRecording is what it costs that every command is on record before it runs, with
// its result after it: the same command with and without the events' rows, in pairs, on a
// host where a command is a process and no more. added-µs/op is the median over the pairs.
func BenchmarkRecording(b *testing.B) {
	sides := []*house{
		open(b, b.TempDir()),
		open(b, b.TempDir(), func(o *engine.Options) { o.Store = unrecorded{o.Store} }),
	}
	for _, h := range sides {
		if _, _, err := h.engine.Create(b.Context(), alice, engine.CreateRequest{Key: "box"}); err != nil {
			b.Fatal(err)
		}
	}
	var took [2][]float64
	var added []float64
	for i := 0; b.Loop(); i++ {
		var pair [2]float64
		for turn := range sides {
			side := (i + turn) % 2 // neither always runs in the other's wake
			began := time.Now()
			if _, err := sides[side].engine.Exec(b.Context(), alice, "box", engine.ExecRequest{Argv: []string{"/bin/true"}}, nil); err != nil {
				b.Fatal(err)
			}
			pair[side] = float64(time.Since(began).Nanoseconds()) / 1e3
			took[side] = append(took[side], pair[side])
		}
		added = append(added, pair[0]-pair[1])
	}
	middle := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
	b.ReportMetric(middle(took[0]), "recorded-µs/op")
	b.ReportMetric(middle(took[1]), "unrecorded-µs/op")
	b.ReportMetric(middle(added), "added-µs/op")
	b.ReportMetric(0, "ns/op")
}
