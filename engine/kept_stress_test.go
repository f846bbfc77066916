// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// TestManyTimeTravelersAtOnce has many callers take, use and delete the snapshots of few
// sandboxes while others stop, start and delete these, and the driver fails now and then.
// Afterwards nothing is halfway and nothing is in use.
func TestManyTimeTravelersAtOnce(t *testing.T) {
	h := open(t, t.TempDir(), func(o *engine.Options) { o.Defaults.StopGrace = 20 * time.Millisecond })
	const callers, calls, keys = 8, 15, 3
	h.faulty.set(func(_ context.Context, call string) error {
		if rand.IntN(40) == 0 {
			return fault.New(fault.Unavailable, "%s fails now and then", call)
		}
		return nil
	}, nil)
	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() {
			for i := range calls {
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(8) == 0 {
					ctx, cancel = context.WithTimeout(t.Context(), time.Duration(rand.IntN(30))*time.Millisecond)
				}
				err := travel(ctx, h, fmt.Sprintf("key-%d", rand.IntN(keys)))
				cancel()
				switch fault.Of(err) {
				case "", fault.NotFound, fault.State, fault.Unavailable, fault.Canceled, fault.Timeout, fault.Exists, fault.Conflict:
				default:
					t.Errorf("caller %d, call %d: %v", n, i, err)
				}
			}
		})
	}
	wg.Wait()
	h.faulty.set(nil, nil)
	h.restart()
	h.whole()
	h.keptWhole()
	p, err := h.engine.List(t.Context(), alice, engine.SandboxesRequest{Limit: store.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Items {
		h.remove(string(s.ID))
	}
	h.settledKept()
	for _, snap := range h.list(snapshot.Query{Limit: store.MaxPage}) {
		if snap.Name == "" {
			t.Errorf("%s stayed without a sandbox", snap.ID)
		}
		if err := h.engine.DeleteSnapshot(t.Context(), alice, "", string(snap.ID)); err != nil {
			t.Error(err)
		}
	}
	h.keptWhole()
	h.end()
	if n := h.engine.HeldSnapshots(); n != 0 {
		t.Errorf("%d snapshots are in use", n)
	}
	if boxes, names, held, alarms := h.engine.Held(); boxes+names+held+alarms != 0 {
		t.Errorf("in memory: %d boxes, %d names, %d keys, %d alarms", boxes, names, held, alarms)
	}
}

func travel(ctx context.Context, h *house, key string) error {
	var err error
	switch rand.IntN(12) {
	case 0, 1:
		_, _, err = h.engine.Create(ctx, alice, engine.CreateRequest{Key: key, Checkpoints: after(sandbox.CheckpointsCommand)})
	case 2, 3:
		_, err = h.engine.CreateSnapshot(ctx, alice, key, engine.SnapshotRequest{Name: fmt.Sprint("n", rand.IntN(3)), Replace: rand.IntN(2) == 0})
	case 4:
		_, err = h.engine.Rollback(ctx, alice, key, fmt.Sprint("n", rand.IntN(3)))
	case 5:
		_, err = h.engine.Fork(ctx, alice, key, engine.ForkRequest{Count: 2})
	case 6:
		_, _, err = h.engine.Create(ctx, alice, engine.CreateRequest{From: fmt.Sprint(key, "/n", rand.IntN(3))})
	case 7:
		err = h.engine.DeleteSnapshot(ctx, alice, key, fmt.Sprint("n", rand.IntN(3)))
	case 8:
		_, err = h.engine.Stop(ctx, alice, key)
	case 9:
		err = h.engine.Delete(ctx, alice, key)
	case 10:
		_, err = h.engine.Exec(ctx, alice, key, engine.ExecRequest{Shell: "echo $RANDOM > file; sleep 0.01", KillOnDisconnect: true}, nil)
	case 11:
		err = h.engine.ExportSnapshot(ctx, alice, key, fmt.Sprint("n", rand.IntN(3)), io.Discard)
	}
	return err
}
