// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/internal/checktest"
	"sandpit.dev/sandbox"
)

func TestRestart(t *testing.T) {
	t.Parallel()
	t.Run("EndsTheProcessesAndKeepsTheDisk", func(t *testing.T) {
		for _, state := range []sandbox.State{sandbox.Running, sandbox.Paused, sandbox.Stopped} {
			h := open(t, t.TempDir())
			s := h.create(engine.CreateRequest{Key: "box", AutoDelete: ptr(state != sandbox.Stopped)})
			h.exec("box", "echo kept > file")
			p, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Argv: []string{"sleep", "1000"}})
			if err != nil {
				t.Fatal(err)
			}
			want := []sandbox.EventType{sandbox.EventCreated, sandbox.EventStarted, sandbox.EventExec, sandbox.EventExec, sandbox.EventStopped, sandbox.EventStarted}
			switch state {
			case sandbox.Paused:
				h.pause("box")
				want = slices.Insert(want, 4, sandbox.EventPaused)
			case sandbox.Stopped:
				if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
					t.Fatal(err)
				}
			}
			got, err := h.engine.Restart(t.Context(), alice, "box")
			if err != nil || got.ID != s.ID || got.State != sandbox.Running || got.StopCause != "" || !got.StoppedAt.IsZero() {
				t.Fatalf("%s: got %+v, %v", state, got, err)
			}
			if rec, err := h.engine.Process(t.Context(), alice, "box", p.ID); err != nil || rec.Result == nil || rec.Result.Cause != sandbox.CauseStopped {
				t.Errorf("%s: the process: got %+v, %v", state, rec, err)
			}
			evs := h.wantEvents(s.ID, want...)
			if ev := evs[len(evs)-2]; state != sandbox.Stopped && (ev.Cause != sandbox.CauseRestart || ev.Actor != "alice" || !strings.Contains(ev.Detail, "restarted by alice")) {
				t.Errorf("%s: event: %+v", state, ev)
			}
			if res := h.exec("box", "cat file"); string(res.Stdout) != "kept\n" {
				t.Errorf("%s: stdout: got %q", state, res.Stdout)
			}
		}
	})
	t.Run("ThatDoesNotStartIsStoppedUntilTheNextCall", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box", AutoDelete: ptr(true)})
		h.exec("box", "echo kept > file")
		h.faulty.set(failing("start"), nil)
		_, err := h.engine.Restart(t.Context(), alice, "box")
		wantCode(t, err, fault.Unavailable)
		if got := h.get(s.ID); got == nil || got.State != sandbox.Stopped || got.StopCause != sandbox.CauseRestart {
			t.Fatalf("got %+v", got)
		}
		h.faulty.set(nil, nil)
		if res := h.exec("box", "cat file"); string(res.Stdout) != "kept\n" {
			t.Errorf("stdout: got %q", res.Stdout)
		}
	})
	t.Run("NobodysSandboxIsNotFound", func(t *testing.T) {
		h := open(t, t.TempDir())
		_, err := h.engine.Restart(t.Context(), alice, "no-such")
		wantCode(t, err, fault.NotFound)
	})
}

func TestStop(t *testing.T) {
	t.Parallel()
	t.Run("KeepsTheDiskAndSaysWhoDidIt", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		h.exec("box", "echo kept > file")
		got, err := h.engine.Stop(t.Context(), alice, "box")
		if err != nil || got.State != sandbox.Stopped || got.StopCause != sandbox.CauseUser || got.StoppedAt.IsZero() || !strings.Contains(got.StopDetail, "alice") {
			t.Fatalf("got %+v, %v", got, err)
		}
		got, err = h.engine.Start(t.Context(), alice, string(s.ID))
		if err != nil || got.State != sandbox.Running || got.StopCause != "" || !got.StoppedAt.IsZero() {
			t.Fatalf("got %+v, %v", got, err)
		}
		if res := h.exec("box", "cat file"); string(res.Stdout) != "kept\n" {
			t.Errorf("stdout: got %q", res.Stdout)
		}
		evs := h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventExec,
			sandbox.EventStopped, sandbox.EventStarted, sandbox.EventExec)
		if evs[3].Actor != "alice" || evs[3].Cause != sandbox.CauseUser {
			t.Errorf("event: %+v", evs[3])
		}
	})
	t.Run("StoppedSandboxIsNotAnError", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		for range 2 {
			if got, err := h.engine.Stop(t.Context(), alice, "box"); err != nil || got.State != sandbox.Stopped {
				t.Errorf("got %+v, %v", got, err)
			}
		}
		h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventStopped)
	})
	t.Run("ThenCommandsAreRefusedAndNamedStart", func(t *testing.T) {
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "box"})
		if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		_, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "true"}, nil)
		wantCode(t, err, fault.State)
		if r := fault.As(err).Remedy; !strings.Contains(r, "start box") {
			t.Errorf("remedy: %q", r)
		}
	})
	t.Run("ThatTheDriverRefusesIsFinishedLater", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		h.faulty.set(failing("stop"), nil)
		_, err := h.engine.Stop(t.Context(), alice, "box")
		wantCode(t, err, fault.Unavailable)
		if got := h.get(s.ID); got.State != sandbox.Stopping {
			t.Errorf("state: got %s", got.State)
		}
		h.faulty.set(nil, nil)
		got, err := h.engine.Start(t.Context(), alice, "box") // reconciles it first
		if err != nil || got.State != sandbox.Running {
			t.Fatalf("got %+v, %v", got, err)
		}
		h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventStopped, sandbox.EventStarted)
	})
	t.Run("ThatTheStoreRefusesChangesNothing", func(t *testing.T) {
		var st *stubborn
		h := open(t, t.TempDir(), func(o *engine.Options) { st = &stubborn{Store: o.Store}; o.Store = st })
		h.create(engine.CreateRequest{Key: "box"})
		st.after(0)
		_, err := h.engine.Stop(t.Context(), alice, "box")
		wantCode(t, err, fault.Unavailable)
		st.heal()
		h.exec("box", "true")
	})
	t.Run("WhoseOutcomeTheStoreRefusesIsFinishedByTheNextVerb", func(t *testing.T) {
		var st *stubborn
		h := open(t, t.TempDir(), func(o *engine.Options) { st = &stubborn{Store: o.Store}; o.Store = st })
		s := h.create(engine.CreateRequest{Key: "box"})
		st.after(1)
		_, err := h.engine.Stop(t.Context(), alice, "box")
		wantCode(t, err, fault.Unavailable)
		st.heal()
		if got, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Error(err)
		} else {
			checktest.Equal(t, "State", got.State, sandbox.Stopped)
			checktest.Equal(t, "StopCause", got.StopCause, sandbox.CauseUser)
		}
		h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventStopped)
	})
	t.Run("GoesOnWithoutItsCaller", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan struct{})
		h.faulty.set(func(_ context.Context, call string) error {
			if call == "stop" {
				cancel()
				<-returned
			}
			return nil
		}, nil)
		_, err := h.engine.Stop(ctx, alice, "box")
		close(returned)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		h.await("stopped", func() bool { return h.get(s.ID).State == sandbox.Stopped })
	})
}

// failing makes a hook that fails one call.
func failing(name string) func(context.Context, string) error {
	return func(_ context.Context, call string) error {
		if call == name {
			return fault.New(fault.Unavailable, "%s does not work now", name)
		}
		return nil
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	t.Run("ThatFailsLeavesItStoppedAsItWas", func(t *testing.T) {
		for _, when := range []string{"before", "after"} {
			h := open(t, t.TempDir())
			s := h.create(engine.CreateRequest{Key: "box"})
			if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
				t.Fatal(err)
			}
			if when == "before" {
				h.faulty.set(failing("start"), nil)
			} else {
				h.faulty.set(nil, failing("start"))
			}
			_, err := h.engine.Start(t.Context(), alice, "box")
			wantCode(t, err, fault.Unavailable)
			if got := h.get(s.ID); got.State != sandbox.Stopped || got.StopCause != sandbox.CauseUser {
				t.Errorf("%s: got %s, %s", when, got.State, got.StopCause)
			}
			h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventStopped, sandbox.EventFailed)
			h.faulty.set(nil, nil)
			if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("OfASandboxWhoseDiskIsGoneSaysSo", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		h.end()
		if err := h.host.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(h.dir, "host", string(s.ID))); err != nil {
			t.Fatal(err)
		}
		h2 := open(t, h.dir)
		_, err := h2.engine.Start(t.Context(), alice, "box")
		wantCode(t, err, fault.State)
		if err := h2.engine.Delete(t.Context(), alice, "box"); err != nil {
			t.Error(err)
		}
		h2.nothing()
	})
}

func TestDelete(t *testing.T) {
	t.Parallel()
	t.Run("LeavesOnlyTheEvents", func(t *testing.T) {
		for _, state := range []string{"running", "stopped"} {
			h := open(t, t.TempDir())
			s := h.create(engine.CreateRequest{Key: "box"})
			want := []sandbox.EventType{sandbox.EventCreated, sandbox.EventStarted}
			if state == "stopped" {
				want = append(want, sandbox.EventStopped)
				if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.engine.Delete(t.Context(), alice, "box"); err != nil {
				t.Fatal(err)
			}
			h.nothing()
			h.wantEvents(s.ID, append(want, sandbox.EventDeleted)...)
			wantCode(t, h.engine.Delete(t.Context(), alice, "box"), fault.NotFound)
			_, err := h.engine.Get(t.Context(), alice, string(s.ID))
			wantCode(t, err, fault.NotFound)
			if again := h.create(engine.CreateRequest{Key: "box"}); again.ID == s.ID {
				t.Error("the key gives the deleted sandbox")
			}
		}
	})
	t.Run("ThatTheDriverRefusesIsFinishedByTheNextStart", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		h.faulty.set(failing("remove"), nil)
		wantCode(t, h.engine.Delete(t.Context(), alice, "box"), fault.Unavailable)
		if got := h.get(s.ID); got.State != sandbox.Deleting {
			t.Errorf("state: got %s", got.State)
		}
		h.restart()
		h.nothing()
		evs := h.events(s.ID)
		if last := evs[len(evs)-1]; last.Type != sandbox.EventDeleted || !strings.Contains(last.Detail, "alice") {
			t.Errorf("the last event: %+v; want who asked", last)
		}
	})
	t.Run("GoesOnWithoutItsCaller", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		ctx, cancel := context.WithCancel(t.Context())
		h.faulty.set(func(_ context.Context, call string) error {
			if call == "remove" {
				cancel()
			}
			return nil
		}, nil)
		if err := h.engine.Delete(ctx, alice, "box"); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		h.await("deleted", func() bool { return h.get(s.ID) == nil })
		h.nothing()
	})
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box", Env: map[string]string{"A": "1"}})
	env, labels := map[string]string{"A": "secret2"}, map[string]string{"l": "v"}
	idle, ttl := time.Hour, 2*time.Hour
	memory, disk := 64, 99

	t.Run("ChangesLabelsAndClocksAtAnyTime", func(t *testing.T) {
		got, err := h.engine.Update(t.Context(), alice, "box", update.Patch{Metadata: &labels, IdleTimeout: &idle, TTL: &ttl})
		if err != nil {
			t.Fatal(err)
		}
		checktest.Equal(t, "Metadata['l']", got.Metadata["l"], "v")
		checktest.Equal(t, "IdleTimeout", got.IdleTimeout, idle)
		checktest.Equal(t, "got.ExpiresAt.Sub(got.UpdatedAt)", got.ExpiresAt.Sub(got.UpdatedAt), ttl)
	})
	t.Run("ChangesEnvAndLimitsOfALiveOne", func(t *testing.T) {
		got, err := h.engine.Update(t.Context(), alice, "box", update.Patch{Env: &env, MemoryMB: &memory, DiskMB: &disk})
		if err != nil {
			t.Fatal(err)
		}
		checktest.Equal(t, "State", got.State, sandbox.Running)
		checktest.Equal(t, "Limits.MemoryMB", got.Limits.MemoryMB, 64)
		checktest.Equal(t, "Limits.DiskMB", got.Limits.DiskMB, 99)
		checktest.Equal(t, "Limits.CPU", got.Limits.CPU, s.Limits.CPU)
		if res := h.exec("box", "echo $A $IMAGE"); string(res.Stdout) != "secret2 python\n" {
			t.Errorf("stdout: got %q", res.Stdout)
		}
	})
	t.Run("NamesTheFieldsAndNotTheirValues", func(t *testing.T) {
		n := 0
		for _, ev := range h.events(s.ID) {
			if ev.Type == sandbox.EventUpdated {
				n++
			}
			if strings.Contains(ev.Detail, "secret2") {
				t.Errorf("a secret is in an event: %q", ev.Detail)
			}
		}
		if n != 2 {
			t.Errorf("%d events of updates, want 2", n)
		}
	})
	t.Run("ChecksEveryField", func(t *testing.T) {
		bad, low := -time.Second, 1
		past := time.Now().Add(-time.Hour)
		_, err := h.engine.Update(t.Context(), alice, "box", update.Patch{
			IdleTimeout: &bad, Retention: &bad, TTL: &bad, ExpiresAt: &past, MemoryMB: &low, Env: &map[string]string{"-": ""}})
		wantCode(t, err, fault.Invalid)
		if n := len(fault.As(err).Fields); n != 6 {
			t.Errorf("%d fields: %v", n, err)
		}
	})
}
