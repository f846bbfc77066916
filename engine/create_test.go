// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/engine"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/internal/checktest"
	"sandpit.dev/sandbox"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	t.Run("GivesARunningSandboxWithTheDefaults", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Env: map[string]string{"A": "1"}, Metadata: map[string]string{"team": "x"}})
		got := *s
		if !sandbox.ValidID(string(s.ID)) || s.StartedAt.IsZero() || s.CreatedAt.IsZero() || s.LastActivity.IsZero() {
			t.Errorf("id %q, started %v, created %v, active %v", s.ID, s.StartedAt, s.CreatedAt, s.LastActivity)
		}
		got.ID, got.CreatedAt, got.UpdatedAt, got.StartedAt, got.LastActivity, got.RunningSince = "", time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
		want := sandbox.Sandbox{
			Project: "default", Image: "python", ImageDigest: "sha256:python", Runtime: "memory",
			Limits: sandbox.DefaultLimits(), Env: map[string]string{"A": "1"}, Metadata: map[string]string{"team": "x"},
			Network: sandbox.NetworkPolicy{Mode: sandbox.NetworkOff},
			Clocks: sandbox.Clocks{
				IdleTimeout: sandbox.DefaultIdleTimeout, OnIdle: sandbox.IdleStop, OnExpiry: sandbox.ExpiryDelete, Retention: sandbox.DefaultRetention,
				AutoStart: true, RetentionDefault: true, Checkpoints: sandbox.CheckpointsOff,
			},
			State: sandbox.Running, Revision: 2,
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		evs := h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted)
		if evs[0].Actor != "alice" || evs[0].Via != "rest" || evs[1].Actor != "alice" {
			t.Errorf("who: %q %q %q", evs[0].Actor, evs[0].Via, evs[1].Actor)
		}
		if res := h.exec(string(s.ID), "echo $A $IMAGE"); string(res.Stdout) != "1 python\n" {
			t.Errorf("stdout: got %q", res.Stdout)
		}
	})
	t.Run("ReadsTheSameBeforeAndAfterItWasStored", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "k", TTL: time.Hour})
		stored := h.get(s.ID)
		stored.LastActivity = s.LastActivity // memory may know better
		if d := cmp.Diff(stored, s); d != "" {
			t.Errorf("(-stored +answered)\n%s", d)
		}
	})
	t.Run("NamesEveryWrongField", func(t *testing.T) {
		h := open(t, t.TempDir())
		long := -time.Second
		_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{
			Key: "a/b", Limits: sandbox.Limits{CPU: 1000, MemoryMB: 1},
			Env: map[string]string{"1A": "", "OK": "nul\x00"}, Metadata: map[string]string{strings.Repeat("k", 64): "", "v": strings.Repeat("v", 257)},
			IdleTimeout: &long, Retention: &long, TTL: time.Millisecond, Runtime: "vax",
		})
		wantCode(t, err, fault.Invalid)
		count := map[string]int{}
		for _, f := range fault.As(err).Fields {
			count[f.Name]++
		}
		want := map[string]int{"key": 1, "cpu_cores": 1, "memory_mb": 1, "env": 2, "metadata": 2,
			"idle_timeout_seconds": 1, "retention_seconds": 1, "ttl_seconds": 1, "runtime": 1}
		if d := cmp.Diff(want, count); d != "" {
			t.Errorf("fields (-want +got)\n%s", d)
		}
		h.nothing()
	})
	t.Run("RefusesWhatItCannotDo", func(t *testing.T) {
		h := open(t, t.TempDir())
		for name, c := range map[string]struct {
			r    engine.CreateRequest
			want fault.Code
		}{
			"network": {engine.CreateRequest{Network: &sandbox.NetworkPolicy{Mode: "open"}}, fault.Unsupported},
			"image":   {engine.CreateRequest{Image: "cobol"}, fault.NotFound},
		} {
			_, _, err := h.engine.Create(t.Context(), alice, c.r)
			if got := fault.Of(err); got != c.want {
				t.Errorf("%s: got %q (%v), want %q", name, got, err, c.want)
			}
		}
		h.nothing()
	})
	t.Run("BoundsTheEnvironment", func(t *testing.T) {
		h := open(t, t.TempDir())
		many := map[string]string{}
		for i := range check.MaxEnv + 1 {
			many["A"+strings.Repeat("x", i%200)+string(rune('a'+i%26))+string(rune('a'+i/26))] = ""
		}
		total := map[string]string{}
		for _, n := range []string{"A", "B", "C", "D", "E"} {
			total[n] = strings.Repeat("x", check.MaxEnvValue)
		}
		for name, env := range map[string]map[string]string{
			"many": many, "total": total, "value": {"A": strings.Repeat("x", check.MaxEnvValue+1)},
		} {
			_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Env: env})
			if fault.Of(err) != fault.Invalid || fault.As(err).Fields[0].Name != "env" {
				t.Errorf("%s: got %v", name, err)
			}
		}
		h.nothing()
	})
}

func TestCreateWithAKey(t *testing.T) {
	t.Parallel()
	t.Run("GivesTheSandboxThatHasIt", func(t *testing.T) {
		h := open(t, t.TempDir())
		first := h.create(engine.CreateRequest{Key: "k", Image: "python-3.12"})
		for _, image := range []string{"", "python", "python-3.12"} {
			s, created, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "k", Image: image})
			if err != nil || created || s.ID != first.ID {
				t.Errorf("image %q: got %v, created %v, %v", image, s, created, err)
			}
		}
	})
	t.Run("StartsItIfItIsStopped", func(t *testing.T) {
		h := open(t, t.TempDir())
		first := h.create(engine.CreateRequest{Key: "k"})
		if _, err := h.engine.Stop(t.Context(), alice, "k"); err != nil {
			t.Fatal(err)
		}
		s, created, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		checktest.Equal(t, "created", created, false)
		checktest.Equal(t, "ID", s.ID, first.ID)
		checktest.Equal(t, "State", s.State, sandbox.Running)
	})
	t.Run("RefusesAnotherImageAndNamesBoth", func(t *testing.T) {
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "k"})
		_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "k", Image: "node"})
		wantCode(t, err, fault.Exists)
		if m := fault.As(err).Message; !strings.Contains(m, "python") || !strings.Contains(m, "node") {
			t.Errorf("message: %s", m)
		}
	})
	t.Run("IsItsProjectsOwn", func(t *testing.T) {
		h := open(t, t.TempDir())
		first := h.create(engine.CreateRequest{Key: "k"})
		s, created, err := h.engine.Create(t.Context(), mary, engine.CreateRequest{Key: "k"})
		if err != nil || !created || s.ID == first.ID {
			t.Errorf("got %v, created %v, %v", s, created, err)
		}
	})
	t.Run("CreatesOnceOfAHundredAtOnce", func(t *testing.T) {
		h := open(t, t.TempDir())
		var created atomic.Int64
		var ids sync.Map
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				s, made, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "k"})
				if err != nil {
					t.Error(err)
					return
				}
				if made {
					created.Add(1)
				}
				if s.State != sandbox.Running {
					t.Errorf("state: got %s", s.State)
				}
				ids.Store(s.ID, true)
			})
		}
		wg.Wait()
		n := 0
		ids.Range(func(any, any) bool { n++; return true })
		if created.Load() != 1 || n != 1 || len(h.instances()) != 1 {
			t.Errorf("created %d, ids %d, instances %d; want 1 of each", created.Load(), n, len(h.instances()))
		}
	})
	t.Run("LetsTheNextTryAfterAFailure", func(t *testing.T) {
		h := open(t, t.TempDir())
		var calls atomic.Int64
		h.faulty.set(func(_ context.Context, call string) error {
			if call == "create" && calls.Add(1) <= 3 {
				return fault.New(fault.Exhausted, "full")
			}
			return nil
		}, nil)
		var created, failed atomic.Int64
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				_, made, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "k"})
				switch {
				case fault.Is(err, fault.Exhausted):
					failed.Add(1)
				case err != nil:
					t.Error(err)
				case made:
					created.Add(1)
				}
			})
		}
		wg.Wait()
		if created.Load() != 1 || failed.Load() != 3 {
			t.Errorf("created %d, failed %d; want 1 and 3", created.Load(), failed.Load())
		}
	})
}

func TestCreateThatFails(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	t.Run("LeavesNothing", func(t *testing.T) {
		for _, when := range []string{"before", "after"} {
			t.Run(when, func(t *testing.T) {
				h := open(t, t.TempDir())
				hook := func(_ context.Context, call string) error {
					if call == "create" {
						return boom
					}
					return nil
				}
				if when == "before" {
					h.faulty.set(hook, nil)
				} else {
					h.faulty.set(nil, hook)
				}
				_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "k"})
				if !errors.Is(err, boom) {
					t.Errorf("got %v, want %v", err, boom)
				}
				h.nothing()
				evs := h.wantEvents("", sandbox.EventCreated, sandbox.EventFailed)
				if d := evs[1].Detail; evs[1].OK || strings.Contains(d, "boom") {
					t.Errorf("the event of the failure: OK %v, %q; a cause without a code is not for callers", evs[1].OK, d)
				}
				h.faulty.set(nil, nil)
				if _, made, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "k"}); err != nil || !made {
					t.Errorf("the key is not free: created %v, %v", made, err)
				}
			})
		}
	})
	t.Run("IsUndoneByTheNextStartIfItCouldNotBeAtOnce", func(t *testing.T) {
		h := open(t, t.TempDir(), func(o *engine.Options) { o.Store = &stubborn{Store: o.Store, refuse: 2} })
		_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "k"})
		if err == nil {
			t.Fatal("the store refused the outcome, and Create says nothing")
		}
		h.restart()
		h.nothing()
	})
}

func TestCreateWhoseCallerGoesAway(t *testing.T) {
	t.Parallel()
	t.Run("WithAKeyIsFinished", func(t *testing.T) {
		h := open(t, t.TempDir())
		ctx, cancel := context.WithCancel(t.Context())
		h.faulty.set(func(_ context.Context, call string) error {
			if call == "create" {
				cancel()
			}
			return nil
		}, nil)
		_, _, err := h.engine.Create(ctx, alice, engine.CreateRequest{Key: "k"})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		s, created, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "k"})
		if err != nil || created || s.State != sandbox.Running {
			t.Errorf("the next call: got %v, created %v, %v; want the sandbox of the first", s, created, err)
		}
	})
	t.Run("WithoutAKeyIsDeleted", func(t *testing.T) {
		h := open(t, t.TempDir())
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan struct{})
		h.faulty.set(func(_ context.Context, call string) error {
			if call == "create" {
				cancel()
				<-returned
			}
			return nil
		}, nil)
		_, _, err := h.engine.Create(ctx, alice, engine.CreateRequest{})
		close(returned)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		h.await("deleted", func() bool {
			evs := h.events("")
			return len(evs) > 0 && evs[len(evs)-1].Type == sandbox.EventDeleted
		})
		h.nothing()
	})
}
