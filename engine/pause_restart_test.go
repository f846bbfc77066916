// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// A server's end is nothing to a paused sandbox, nor to what waits in it.
func TestARestartUnderAPause(t *testing.T) {
	t.Parallel()
	t.Run("LeavesItPausedAndItsCommandsGoOnAfterIt", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		rec, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "until [ -e go ]; do sleep 0.01; done; exit 4"})
		if err != nil {
			t.Fatal(err)
		}
		before := h.pause("box")
		h.restart()
		if got := h.get(s.ID); got.State != sandbox.Paused || got.RunTime != before.RunTime || !h.frozen(s.ID) {
			t.Fatalf("got %+v, frozen %v", got, h.frozen(s.ID))
		}
		if ev := h.events(s.ID)[2]; ev.Done {
			t.Fatalf("its command was given up: %+v", ev)
		}
		h.resume("box")
		h.exec("box", "touch go")
		h.await("the end of the command", func() bool { return h.events(s.ID)[2].Done })
		if ev := h.events(s.ID)[2]; ev.ProcessID != rec.ID || ev.ExitCode != 4 {
			t.Errorf("event: %+v", ev)
		}
	})
	t.Run("CompletesItsCommandsIfItIsStoppedThen", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		if _, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "sleep 60"}); err != nil {
			t.Fatal(err)
		}
		h.pause("box")
		h.restart()
		if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		if ev := h.events(s.ID)[2]; !ev.Done || ev.Cause != sandbox.CauseStopped {
			t.Errorf("event: %+v", ev)
		}
	})
	t.Run("FreezesAgainWhatSomebodyThawedMeanwhile", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		h.pause("box")
		h.end()
		h.thaw(s.ID)
		h.serve()
		if got := h.get(s.ID); got.State != sandbox.Paused || !h.frozen(s.ID) {
			t.Errorf("got %s, frozen %v", got.State, h.frozen(s.ID))
		}
		h.resume("box")
		h.exec("box", "true")
	})
	t.Run("ThawsWhatIsToRun", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		h.end()
		inst, err := h.host.Driver().Open(t.Context(), runtime.Handle{ID: s.ID})
		if err != nil {
			t.Fatal(err)
		}
		if err := inst.(runtime.Pauser).Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.serve()
		if got := h.get(s.ID); got.State != sandbox.Running || h.frozen(s.ID) {
			t.Errorf("got %s, frozen %v", got.State, h.frozen(s.ID))
		}
		h.exec("box", "true")
	})
	t.Run("SaysWhatEndedItMeanwhile", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		before := h.pause("box")
		h.end()
		if err := h.host.Kill(s.ID, runtime.Exit{Cause: sandbox.CauseKilled, Detail: "by hand"}); err != nil {
			t.Fatal(err)
		}
		h.serve()
		got := h.get(s.ID)
		if got.State != sandbox.Stopped || got.StopCause != sandbox.CauseKilled || got.StopDetail != "by hand; it was paused" || got.RunTime != before.RunTime {
			t.Errorf("got %+v", got)
		}
	})
}

// thaw resumes an instance behind the engine's back.
func (h *house) thaw(id sandbox.ID) {
	h.t.Helper()
	inst, err := h.host.Driver().Open(context.Background(), runtime.Handle{ID: id})
	if err == nil {
		err = inst.(runtime.Pauser).Resume(context.Background())
	}
	if err != nil {
		h.t.Fatal(err)
	}
}
