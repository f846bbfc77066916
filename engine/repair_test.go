// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"os"
	goruntime "runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// counting is a driver that counts what is opened, but for one whose time has come.
type counting struct {
	runtime.Driver
	due    sandbox.ID
	disks  []runtime.Handle // of stopped sandboxes, listed as if they were there
	opened atomic.Int64
}

func (c *counting) List(ctx context.Context) ([]runtime.Handle, error) {
	up, err := c.Driver.List(ctx)
	return append(up, c.disks...), err
}

func (c *counting) Open(ctx context.Context, h runtime.Handle) (runtime.Instance, error) {
	if h.ID != c.due {
		c.opened.Add(1)
	}
	return c.Driver.Open(ctx, h)
}

// However many sandboxes are stopped, a start opens none of them and keeps none in
// memory; and those whose time has come go all the same. SANDPIT_TEST_STOPPED is how
// many there are.
func TestStoppedSandboxesCostAStartNothing(t *testing.T) {
	n := 2000
	if v, err := strconv.Atoi(os.Getenv("SANDPIT_TEST_STOPPED")); err == nil {
		n = v
	}
	h := open(t, t.TempDir())
	up := h.create(engine.CreateRequest{Key: "up"})
	h.end()
	at := time.Now().UTC().Truncate(time.Microsecond)
	var due sandbox.ID
	var disks []runtime.Handle
	for done := 0; done < n; {
		err := h.store.Update(t.Context(), func(tx store.Tx) error {
			for range min(1000, n-done) {
				s := *up
				s.ID, s.Key, s.State, s.StopCause, s.StoppedAt = sandbox.NewID(), "", sandbox.Stopped, sandbox.CauseUser, at
				s.RunningSince = time.Time{}
				if done == n/2 {
					due, s.StoppedAt = s.ID, at.Add(-s.Retention)
				}
				if err := tx.Sandboxes().Insert(&s); err != nil {
					return err
				}
				disks = append(disks, runtime.Handle{ID: s.ID})
				done++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	count := &counting{Driver: h.host.Driver(), due: due, disks: disks}
	var before, after goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&before)
	began := time.Now()
	h.serve(noRounds, func(o *engine.Options) { o.Runtimes = map[string]runtime.Driver{"memory": count} })
	took, opened := time.Since(began), count.opened.Load()
	goruntime.GC()
	goruntime.ReadMemStats(&after)
	if opened != 1 {
		t.Errorf("%d instances were opened, want that of the one that runs", opened)
	}
	h.await("the end of the one whose time has come", func() bool { return h.get(due) == nil })
	boxes, _, _, alarms := h.engine.Held()
	if boxes > 2 || alarms > 2 {
		t.Errorf("in memory: %d boxes and %d alarms, want those of the one that runs", boxes, alarms)
	}
	t.Logf("%d stopped: ready after %v, %d KiB more on the heap", n, took, (int64(after.HeapAlloc)-int64(before.HeapAlloc))>>10)
	if s := h.get(up.ID); s.State != sandbox.Running {
		t.Errorf("the one that runs: %s", s.State)
	}
}
