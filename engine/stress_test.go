// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/engine"
	"sandpit.dev/engine/metrics"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// TestManyAtOnce has many callers do anything with few sandboxes, some of them
// going away in the middle, while the driver fails now and then. Afterwards the
// records are what is there, and memory holds what runs and no more.
func TestManyAtOnce(t *testing.T) {
	reg := prometheus.NewRegistry()
	h := open(t, t.TempDir(), func(o *engine.Options) {
		o.Metrics = metrics.New(reg)
		o.Defaults.StopGrace = 20 * time.Millisecond
	})
	const callers, calls, keys = 16, 25, 4
	h.faulty.set(func(_ context.Context, call string) error {
		if rand.IntN(30) == 0 {
			return fault.New(fault.Unavailable, "%s fails now and then", call)
		}
		return nil
	}, nil)
	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() {
			for i := range calls {
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(5) == 0 {
					ctx, cancel = context.WithTimeout(t.Context(), time.Duration(rand.IntN(20))*time.Millisecond)
				}
				err := anything(ctx, h, fmt.Sprintf("key-%d", rand.IntN(keys)))
				cancel()
				switch fault.Of(err) {
				case "", fault.NotFound, fault.State, fault.Unavailable, fault.Canceled, fault.Timeout:
				default:
					t.Errorf("caller %d, call %d: %v", n, i, err)
				}
			}
		})
	}
	wg.Wait()
	h.faulty.set(nil, nil)
	reg = prometheus.NewRegistry() // each engine counts for itself
	h.restart(func(o *engine.Options) { o.Metrics = metrics.New(reg) })
	h.whole()

	p, err := h.engine.List(t.Context(), alice, engine.SandboxesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for state, n := range states(t, reg) {
		if want := p.Counts[state]; n != want {
			t.Errorf("the figure of %s sandboxes: got %d, want %d", state, n, want)
		}
	}
	for _, s := range p.Items {
		if err := h.engine.Delete(t.Context(), alice, string(s.ID)); err != nil {
			t.Error(err)
		}
	}
	h.nothing()
	for state, n := range states(t, reg) {
		if n != 0 {
			t.Errorf("the figure of %s sandboxes: got %d, want 0", state, n)
		}
	}
	h.end() // watchers and followers let go
	if boxes, names, held, alarms := h.engine.Held(); boxes+names+held+alarms != 0 {
		t.Errorf("in memory: %d boxes, %d names, %d keys, %d alarms; want none", boxes, names, held, alarms)
	}
}

func states(t *testing.T, reg *prometheus.Registry) map[sandbox.State]int {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[sandbox.State]int{}
	for _, f := range families {
		if f.GetName() == "sandpit_sandboxes" {
			for _, m := range f.GetMetric() {
				got[sandbox.State(m.GetLabel()[0].GetValue())] = int(m.GetGauge().GetValue())
			}
		}
	}
	if len(got) == 0 {
		t.Fatal("there is no figure of sandboxes by state")
	}
	return got
}

func anything(ctx context.Context, h *house, key string) error {
	var err error
	switch rand.IntN(10) {
	case 0, 1, 2:
		_, _, err = h.engine.Create(ctx, alice, engine.CreateRequest{Key: key})
	case 3:
		_, err = h.engine.Stop(ctx, alice, key)
	case 4:
		_, err = h.engine.Start(ctx, alice, key)
	case 5:
		err = h.engine.Delete(ctx, alice, key)
	case 6, 7:
		_, err = h.engine.Exec(ctx, alice, key, engine.ExecRequest{Shell: "echo; sleep 0.01", KillOnDisconnect: true}, nil)
	case 8:
		_, _, err = h.files.WriteFile(ctx, alice, key, "f", strings.NewReader("hello"), sandbox.WriteFileOptions{})
	case 9:
		_, err = h.engine.Update(ctx, alice, key, update.Patch{Metadata: &map[string]string{"n": fmt.Sprint(rand.Int())}})
	}
	return err
}
