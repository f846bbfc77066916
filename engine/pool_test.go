// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/engine"
	"sandpit.dev/engine/metrics"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// withPools returns an engine pools, and a registry of its figures.
func withPools(reg *prometheus.Registry, list ...prewarm.Pool) func(*engine.Options) {
	return func(o *engine.Options) {
		o.Pools = list
		if reg != nil {
			o.Metrics = metrics.New(reg)
		}
	}
}

// pool returns how the house's only pool stands.
func (h *house) pool() prewarm.PoolInfo {
	h.t.Helper()
	info, err := h.engine.Info(context.Background(), alice)
	if err != nil {
		h.t.Fatal(err)
	}
	if len(info.Pools) != 1 {
		h.t.Fatalf("pools: %v", info.Pools)
	}
	return info.Pools[0]
}

// until waits for what nobody tells of.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (h *house) filled(n int) {
	h.t.Helper()
	until(h.t, "the pool is filled", func() bool { p := h.pool(); return p.Ready == n && p.Making == 0 })
}

func TestPool(t *testing.T) {
	t.Run("GivesWhatItHasToACreateThatAsksForTheLike", func(t *testing.T) {
		var made atomic.Int64
		reg := prometheus.NewRegistry()
		h := open(t, t.TempDir(), withPools(reg, prewarm.Pool{Image: "python-3.12", Min: 2}), func(o *engine.Options) {
			o.Runtimes["memory"].(*faulty).set(func(_ context.Context, call string) error {
				if call == "create" {
					made.Add(1)
				}
				return nil
			}, nil)
		})
		h.filled(2)
		ready := h.instances()
		if page, err := h.engine.List(t.Context(), alice, storeAll); err != nil || page.Total != 0 {
			t.Errorf("what waits in a pool is listed: %v, %v", page.Items, err)
		}
		before := made.Load()
		s := h.create(engine.CreateRequest{Key: "k", Env: map[string]string{"A": "1"}, Metadata: map[string]string{"team": "x"}, TTL: time.Hour})
		if !slices.Contains(ready, s.ID) || made.Load() != before {
			t.Errorf("%s is not one of %v; %d were made for it", s.ID, ready, made.Load()-before)
		}
		if s.Project != "default" || s.Key != "k" || s.State != sandbox.Running || s.ExpiresAt.IsZero() || s.Metadata["team"] != "x" {
			t.Errorf("its record: %+v", s)
		}
		if res := h.exec("k", "echo $A $IMAGE"); string(res.Stdout) != "1 python\n" {
			t.Errorf("stdout: %q", res.Stdout)
		}
		h.filled(2) // again
		h.wantEvents(s.ID, sandbox.EventPrepared, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventExec)
		if p := h.pool(); p.Hits != 1 || p.Misses != 0 || p.Name != "python" {
			t.Errorf("figures: %+v", p)
		}
		if got := figure(t, reg, "sandpit_pool_ready"); got != 2 {
			t.Errorf("sandpit_pool_ready: %v", got)
		}
		// It ends as any other.
		if err := h.engine.Delete(t.Context(), alice, "k"); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(h.instances(), s.ID) {
			t.Error("its instance is left")
		}
	})
	t.Run("IsPassedOverByACreateThatAsksForMore", func(t *testing.T) {
		h := open(t, t.TempDir(), withPools(nil, prewarm.Pool{Image: "python", Min: 1}))
		h.filled(1)
		h.create(engine.CreateRequest{Key: "origin"})
		h.filled(1)
		snapshot := string(h.snapshot("origin", "").ID)
		if _, err := h.volumes().CreateVolume(t.Context(), alice, volume.Request{Name: "v"}); err != nil {
			t.Fatal(err)
		}
		waits := h.instances()
		for name, r := range map[string]engine.CreateRequest{
			"image": {Image: "node"}, "disk": {From: snapshot}, "volume": {Mounts: []volume.Mount{{Volume: "v", Path: "/mnt"}}},
		} {
			if s := h.create(r); slices.Contains(waits, s.ID) {
				t.Errorf("%s: it got what was made for another", name)
			}
		}
		if p := h.pool(); p.Hits != 1 || p.Misses != 0 || p.Ready != 1 {
			t.Errorf("figures: %+v", p)
		}
	})
	t.Run("GivesTheLimitsThatAreAskedFor", func(t *testing.T) {
		h := open(t, t.TempDir(), withPools(nil, prewarm.Pool{Image: "python", Min: 1}))
		h.filled(1)
		waits := h.instances()
		if s := h.create(engine.CreateRequest{Limits: sandbox.Limits{MemoryMB: 1024}}); !slices.Contains(waits, s.ID) || s.Limits.MemoryMB != 1024 {
			t.Errorf("%s with %d MB, want one of %v with 1024", s.ID, s.Limits.MemoryMB, waits)
		} else if got, err := h.host.Limits(s.ID); err != nil || got.MemoryMB != 1024 {
			t.Errorf("its instance has %d MB, %v", got.MemoryMB, err)
		}
		h.filled(1)
		h.faulty.set(func(_ context.Context, call string) error {
			if call == "resize" {
				return errors.New("no such limit")
			}
			return nil
		}, nil)
		s := h.create(engine.CreateRequest{Limits: sandbox.Limits{MemoryMB: 128}})
		if got, err := h.host.Limits(s.ID); err != nil || got.MemoryMB != 128 {
			t.Errorf("one whose limits cannot change has %d MB, %v", got.MemoryMB, err)
		}
		if res := h.exec(string(s.ID), "echo hi"); string(res.Stdout) != "hi\n" {
			t.Errorf("stdout: %q", res.Stdout)
		}
	})
	t.Run("GivesTheHostNameThatIsAskedFor", func(t *testing.T) {
		h := open(t, t.TempDir(), withPools(nil, prewarm.Pool{Image: "python", Min: 1}))
		for key, named := range map[string]bool{"web-1": true, "my_box": false, "": false} {
			h.filled(1)
			waits := h.instances()
			s := h.create(engine.CreateRequest{Key: key})
			want := string(s.ID)
			if named {
				want = key
			}
			if got, err := h.host.Hostname(s.ID); err != nil || got != want || !slices.Contains(waits, s.ID) {
				t.Errorf("with the key %q the host name of %s is %q, %v, want %q and one of %v", key, s.ID, got, err, want, waits)
			}
		}
		h.filled(1)
		h.faulty.set(func(_ context.Context, call string) error {
			if call == "name" {
				return errors.New("no such name")
			}
			return nil
		}, nil)
		s := h.create(engine.CreateRequest{Key: "web-2"})
		if got, err := h.host.Hostname(s.ID); err != nil || got != "web-2" {
			t.Errorf("one whose name cannot change is made anew, and has the host name %q, %v", got, err)
		}
	})
	t.Run("PrefersOneThatHasTheLimits", func(t *testing.T) {
		small := sandbox.Limits{MemoryMB: 128}
		h := open(t, t.TempDir(), withPools(nil, prewarm.Pool{Image: "python", Min: 1}, prewarm.Pool{Name: "small", Image: "python", Limits: small, Min: 1}))
		pools := func() []prewarm.PoolInfo {
			info, err := h.engine.Info(t.Context(), alice)
			if err != nil {
				t.Fatal(err)
			}
			return info.Pools
		}
		until(t, "both are filled", func() bool { p := pools(); return p[0].Ready == 1 && p[1].Ready == 1 })
		h.create(engine.CreateRequest{Limits: small})
		if p := pools(); p[0].Hits != 0 || p[1].Hits != 1 {
			t.Errorf("figures: %+v", p)
		}
	})
	t.Run("WithoutAnImageFollowsTheLastCreates", func(t *testing.T) {
		h := open(t, t.TempDir(), withPools(nil, prewarm.Pool{Min: 2}))
		h.filled(2)
		if p := h.pool(); p.Name != "recent" || p.Image != "python" {
			t.Errorf("before any create: %+v", p)
		}
		s := h.create(engine.CreateRequest{})
		h.filled(2)
		waits := slices.DeleteFunc(h.instances(), func(id sandbox.ID) bool { return id == s.ID })
		for range 8 {
			h.create(engine.CreateRequest{Image: "node"})
		}
		until(t, "what no create asked for of late is removed", func() bool {
			return !slices.ContainsFunc(h.instances(), func(id sandbox.ID) bool { return slices.Contains(waits, id) })
		})
		h.filled(2)
		hits := h.pool().Hits
		for range 2 {
			h.create(engine.CreateRequest{Image: "node"})
		}
		if p := h.pool(); p.Image != "node" || p.Hits != hits+2 {
			t.Errorf("after creates of another image: %+v, %d hits before", p, hits)
		}
	})
	t.Run("GrowsWithWhoAsksAndIsNeverInTheWay", func(t *testing.T) {
		h := open(t, t.TempDir(), withPools(nil, prewarm.Pool{Image: "python", Min: 0, Max: 3, Refill: 2}))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { h.create(engine.CreateRequest{}) })
		}
		wg.Wait()
		h.filled(3)
		if p := h.pool(); p.Hits+p.Misses != 8 || p.Misses < 1 || p.Target != 3 {
			t.Errorf("figures: %+v", p)
		}
	})
	t.Run("GivesEachOnce", func(t *testing.T) {
		h := open(t, t.TempDir(), withPools(nil, prewarm.Pool{Image: "python", Min: 4}))
		h.filled(4)
		var mu sync.Mutex
		ids := map[sandbox.ID]int{}
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				s := h.create(engine.CreateRequest{})
				mu.Lock()
				defer mu.Unlock()
				ids[s.ID]++
			})
		}
		wg.Wait()
		if len(ids) != 12 {
			t.Errorf("12 creates gave %d sandboxes", len(ids))
		}
		if p := h.pool(); p.Hits < 4 {
			t.Errorf("hits: %d of 4 at least", p.Hits)
		}
	})
	t.Run("LooksAtOneBeforeItGivesIt", func(t *testing.T) {
		h := open(t, t.TempDir(), withPools(nil, prewarm.Pool{Image: "python", Min: 2}))
		h.filled(2)
		waits := h.instances()
		h.faulty.set(func(_ context.Context, call string) error {
			if call == "dial" {
				return fault.New(fault.Unavailable, "deaf")
			}
			return nil
		}, nil)
		s := h.create(engine.CreateRequest{})
		h.faulty.set(nil, nil)
		if slices.Contains(waits, s.ID) {
			t.Error("a create got one that does not answer")
		}
		until(t, "those that do not answer are removed", func() bool {
			return !slices.ContainsFunc(h.instances(), func(id sandbox.ID) bool { return slices.Contains(waits, id) })
		})
		if p := h.pool(); p.Misses != 1 || p.Hits != 0 {
			t.Errorf("figures: %+v", p)
		}
	})
	t.Run("KeepsWhatACallerThatGoesAwayDidNotTake", func(t *testing.T) {
		h := open(t, t.TempDir(), withPools(nil, prewarm.Pool{Image: "python", Min: 3}))
		h.filled(3)
		ctx, goAway := context.WithCancel(t.Context())
		defer goAway()
		h.faulty.set(func(ctx context.Context, call string) error {
			if call == "dial" {
				goAway()
				return ctx.Err()
			}
			return nil
		}, nil)
		_, _, err := h.engine.Create(ctx, alice, engine.CreateRequest{})
		h.faulty.set(nil, nil)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a create whose caller goes away: %v", err)
		}
		if p := h.pool(); p.Hits != 1 || p.Misses != 0 {
			t.Errorf("%d hits and %d misses, want one of the three taken and the others kept", p.Hits, p.Misses)
		}
	})
	t.Run("ReplacesWhatGoesDown", func(t *testing.T) {
		h := open(t, t.TempDir(), withPools(nil, prewarm.Pool{Image: "python", Min: 1}))
		h.filled(1)
		was := h.instances()[0]
		if err := h.host.Kill(was, runtime.Exit{Cause: sandbox.CauseOOM}); err != nil {
			t.Fatal(err)
		}
		until(t, "another takes its place", func() bool {
			now := h.instances()
			return len(now) == 1 && now[0] != was && h.pool().Ready == 1
		})
	})
	t.Run("ThatCannotBeFilledIsNoError", func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		h := open(t, t.TempDir(), withPools(nil, prewarm.Pool{Image: "python", Min: 1}), func(o *engine.Options) {
			o.Runtimes["memory"].(*faulty).set(func(_ context.Context, call string) error {
				if call == "create" && broken.Swap(false) {
					return errors.New("no room")
				}
				return nil
			}, nil)
		})
		until(t, "it was tried", func() bool { return !broken.Load() })
		h.create(engine.CreateRequest{})
	})
	t.Run("IsEmptyWhenItsServerIsGone", func(t *testing.T) {
		dir := t.TempDir()
		h := open(t, dir, withPools(nil, prewarm.Pool{Image: "python", Min: 3, Refill: 3}))
		h.filled(3)
		s := h.create(engine.CreateRequest{})
		h.end()
		if ids := h.instances(); len(ids) != 1 || ids[0] != s.ID {
			t.Errorf("left: %v, want %s alone", ids, s.ID)
		}
	})
	t.Run("KeepsNothingWhileItIsSwitchedOff", func(t *testing.T) {
		h := open(t, t.TempDir(), withPools(nil, prewarm.Pool{Image: "python", Min: 2, Refill: 2}))
		h.filled(2)
		h.engine.Pools().Enable(false)
		until(t, "what is ready is removed", func() bool { return h.pool().Ready == 0 && len(h.instances()) == 0 })
		if p := h.pool(); p.Target != 0 || p.Min != 2 || h.engine.Pools().Enabled() {
			t.Errorf("it is %+v", p)
		}
		if s := h.create(engine.CreateRequest{}); s.State != sandbox.Running {
			t.Errorf("a create without it: %v", s.State)
		}
		h.engine.Pools().Enable(true)
		h.filled(2)
	})
	t.Run("WithoutSenseIsRefused", func(t *testing.T) {
		h := open(t, t.TempDir())
		for name, list := range map[string][]prewarm.Pool{
			"image":   {{Image: "cobol", Min: 1}},
			"empty":   {{Image: "python"}},
			"min":     {{Image: "python", Min: 3, Max: 2}},
			"size":    {{Image: "python", Min: 1, Max: prewarm.MaxPoolSize + 1}},
			"runtime": {{Image: "python", Min: 1, Runtime: "vax"}},
			"limits":  {{Image: "python", Min: 1, Limits: sandbox.Limits{CPU: 1e6}}},
			"twice":   {{Image: "python", Min: 1}, {Image: "python-3.12", Min: 1}},
		} {
			o := options(h.store, h.host.Driver())
			o.Pools = list
			if _, err := engine.New(o); err == nil {
				t.Errorf("%s: it was taken", name)
			}
		}
	})
}

// Wherever a server is killed, the next one finds what a pool of it left, and removes it.
func TestAPoolWhoseServerIsKilled(t *testing.T) {
	for _, point := range []string{"pool.intent", "pool.done", "claim.intent", "claim.done"} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			killAt(t, dir, point)
			h := open(t, dir)
			h.nothing()
		})
	}
}
