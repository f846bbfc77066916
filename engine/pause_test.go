// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// frozen reports whether the driver holds the instance frozen.
func (h *house) frozen(id sandbox.ID) bool {
	h.t.Helper()
	inst, err := h.host.Driver().Open(context.Background(), runtime.Handle{ID: id})
	if err != nil {
		h.t.Fatal(err)
	}
	return inst.(runtime.Pauser).Paused()
}

func (h *house) pause(ref string) *sandbox.Sandbox {
	h.t.Helper()
	s, err := h.engine.Pause(h.t.Context(), alice, ref)
	if err != nil || s.State != sandbox.Paused {
		h.t.Fatalf("Pause: %+v, %v", s, err)
	}
	return s
}

func (h *house) resume(ref string) *sandbox.Sandbox {
	h.t.Helper()
	s, err := h.engine.Resume(h.t.Context(), alice, ref)
	if err != nil || s.State != sandbox.Running {
		h.t.Fatalf("Resume: %+v, %v", s, err)
	}
	return s
}

func TestPause(t *testing.T) {
	t.Run("FreezesAndSaysWhoDidItAndResumeUndoesIt", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		got := h.pause("box")
		if got.StopCause != sandbox.CauseUser || !strings.Contains(got.StopDetail, "alice") || got.StoppedAt.IsZero() || !h.frozen(s.ID) {
			t.Errorf("got %+v, frozen %v", got, h.frozen(s.ID))
		}
		got = h.resume("box")
		if got.StopCause != "" || got.StopDetail != "" || !got.StoppedAt.IsZero() || h.frozen(s.ID) || !got.StartedAt.Equal(s.StartedAt) {
			t.Errorf("got %+v, frozen %v", got, h.frozen(s.ID))
		}
		evs := h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventPaused, sandbox.EventResumed)
		if evs[2].Actor != "alice" || evs[2].Cause != sandbox.CauseUser || evs[3].Actor != "alice" {
			t.Errorf("events: %+v, %+v", evs[2], evs[3])
		}
	})
	t.Run("TwiceIsFineAndSoIsAResumeOfWhatRuns", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		h.resume("box")
		h.pause("box")
		h.pause("box")
		h.resume("box")
		h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventPaused, sandbox.EventResumed)
	})
	t.Run("KeepsWhatItsProcessesHoldAndWhoeverFollowsThemWaits", func(t *testing.T) {
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "box"})
		began, ended := make(chan struct{}), make(chan engine.ExecResult, 1)
		go func() {
			res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{
				Shell: "kept=in-memory; echo; until [ -e go ]; do sleep 0.01; done; echo $kept"}, func(f sandbox.Frame) error {
				if string(f.Data) == "\n" {
					close(began)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			ended <- res
		}()
		<-began
		h.pause("box")
		select {
		case res := <-ended:
			t.Fatalf("its caller was told meanwhile: %+v", res)
		default:
		}
		h.resume("box")
		h.exec("box", "touch go")
		if res := <-ended; res.ExitCode != 0 || res.Running {
			t.Errorf("got %+v", res)
		}
	})
	t.Run("LosesNothingAtTheSecondNorTheTenthTime", func(t *testing.T) {
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "box"})
		rec, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{
			Shell: "n=0; while read line; do n=$((n+1)); echo $line >> lines; echo $n > count; done", StreamStdin: true})
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for i := 1; i <= 10; i++ {
			fmt.Fprintln(&want, i)
			if _, err := h.engine.WriteInput(t.Context(), alice, "box", rec.ID, engine.InputRequest{Offset: -1, Data: fmt.Appendln(nil, i)}); err != nil {
				t.Fatal(err)
			}
			h.exec("box", fmt.Sprintf("until [ \"$(cat count)\" = %d ]; do sleep 0.01; done; echo %d >> edits", i, i))
			h.pause("box")
			h.resume("box")
			if res := h.exec("box", "cat lines; cat edits"); string(res.Stdout) != want.String()+want.String() {
				t.Fatalf("after %d: got %q", i, res.Stdout)
			}
		}
	})
	t.Run("StandsStillForTimeLimits", func(t *testing.T) {
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "box"})
		ended := make(chan engine.ExecResult, 1)
		began := make(chan struct{})
		go func() {
			res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{
				Shell: "echo; until [ -e go ]; do sleep 0.01; done", Timeout: 2 * time.Second}, func(sandbox.Frame) error {
				close(began)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			ended <- res
		}()
		<-began
		h.pause("box")
		<-time.After(2500 * time.Millisecond) // more than its limit
		h.resume("box")
		h.exec("box", "touch go")
		if res := <-ended; res.ExitCode != 0 || res.Cause != sandbox.CauseNone {
			t.Errorf("got %+v", res)
		}
	})
	t.Run("StandsStillForTheTimeLimitsOfCells", func(t *testing.T) {
		needs(t, "python3")
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "box"})
		h.cell("box", code.Request{Code: "import os, time"})
		ended := make(chan code.Result, 1)
		began := make(chan struct{})
		go func() {
			res, err := h.code.RunCode(t.Context(), alice, "box", code.Request{
				Code: "open('began', 'w')\nwhile not os.path.exists('go'): time.sleep(0.01)\n7", Timeout: 2 * time.Second},
				&code.Sink{Started: func(code.Start) error { close(began); return nil }})
			if err != nil {
				t.Error(err)
			}
			ended <- res
		}()
		<-began
		h.exec("box", "until [ -e began ]; do sleep 0.01; done")
		h.pause("box")
		<-time.After(2500 * time.Millisecond) // more than its limit
		h.resume("box")
		h.exec("box", "touch go")
		if res := <-ended; res.Status != code.OK {
			t.Errorf("got %+v", res)
		}
	})
	t.Run("StopsTheMeter", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		p := h.pause("box")
		first := p.RunTime
		if want := p.StoppedAt.Sub(s.RunningSince); first != want || !p.RunningSince.IsZero() {
			t.Errorf("after the pause: %v since %v, want %v", first, p.RunningSince, want)
		}
		r := h.resume("box")
		if r.RunTime != first || r.RunningSince.Before(p.StoppedAt) {
			t.Errorf("after the resume: %v, since %v", r.RunTime, r.RunningSince)
		}
		h.pause("box")
		q, err := h.engine.Stop(t.Context(), alice, "box")
		if err != nil {
			t.Fatal(err)
		}
		if most := q.StoppedAt.Sub(s.RunningSince) - r.RunningSince.Sub(p.StoppedAt); q.RunTime <= first || q.RunTime > most {
			t.Errorf("after the stop: %v, want at most %v", q.RunTime, most)
		}
		again, err := h.engine.Start(t.Context(), alice, "box")
		if err != nil || again.RunTime != q.RunTime || !again.RunningSince.Equal(again.StartedAt) {
			t.Errorf("after the start: %+v, %v", again, err)
		}
	})
	t.Run("ThatTheRuntimeCannotDoIsUnsupportedWithItsReason", func(t *testing.T) {
		h := open(t, t.TempDir())
		h.faulty.bare = true
		s := h.create(engine.CreateRequest{Key: "box"})
		_, err := h.engine.Pause(t.Context(), alice, "box")
		wantCode(t, err, fault.Unsupported)
		if got := h.get(s.ID); got.State != sandbox.Running {
			t.Errorf("state: %s", got.State)
		}
		h.exec("box", "true")
	})
	t.Run("ThatFailsChangesNothing", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		for _, set := range []func(){
			func() { h.faulty.set(failing("pause"), nil) },
			func() { h.faulty.set(nil, failing("pause")) },
		} {
			set()
			_, err := h.engine.Pause(t.Context(), alice, "box")
			wantCode(t, err, fault.Unavailable)
			h.faulty.set(nil, nil)
			if got := h.get(s.ID); got.State != sandbox.Running || got.StopCause != "" || got.RunTime != 0 || !got.RunningSince.Equal(s.RunningSince) {
				t.Errorf("got %+v", got)
			}
			h.exec("box", "true")
		}
		evs := h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventFailed, sandbox.EventExec, sandbox.EventFailed, sandbox.EventExec)
		if evs[2].OK || !strings.HasPrefix(evs[2].Detail, "pause: ") {
			t.Errorf("event: %+v", evs[2])
		}
	})
	t.Run("WhoseResumeFailsStaysPaused", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		h.pause("box")
		h.faulty.set(failing("resume"), nil)
		_, err := h.engine.Resume(t.Context(), alice, "box")
		wantCode(t, err, fault.Unavailable)
		h.faulty.set(nil, nil)
		if got := h.get(s.ID); got.State != sandbox.Paused || got.StopCause != sandbox.CauseUser {
			t.Errorf("got %+v", got)
		}
		h.resume("box")
		h.exec("box", "true")
	})
	t.Run("WhoseOutcomeTheStoreRefusesIsUndone", func(t *testing.T) {
		var st *stubborn
		h := open(t, t.TempDir(), func(o *engine.Options) { st = &stubborn{Store: o.Store}; o.Store = st })
		s := h.create(engine.CreateRequest{Key: "box"})
		for n := range 2 {
			st.after(n)
			_, err := h.engine.Pause(t.Context(), alice, "box")
			wantCode(t, err, fault.Unavailable)
			st.heal()
			if got, err := h.engine.Start(t.Context(), alice, "box"); err != nil || got.State != sandbox.Running || h.frozen(s.ID) {
				t.Errorf("got %+v, %v", got, err)
			}
			h.exec("box", "true")
		}
		h.pause("box")
		st.after(1)
		_, err := h.engine.Resume(t.Context(), alice, "box")
		wantCode(t, err, fault.Unavailable)
		st.heal()
		h.resume("box")
		h.exec("box", "true")
	})
}

func TestWhatIsPaused(t *testing.T) {
	t.Run("RefusesCallsAndNamesResume", func(t *testing.T) {
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "box"})
		h.pause("box")
		_, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "true"}, nil)
		wantCode(t, err, fault.State)
		if f := fault.As(err); !strings.Contains(f.Remedy, "resume box") || !strings.Contains(f.Message, "alice") {
			t.Errorf("message %q, remedy %q", f.Message, f.Remedy)
		}
		if !h.frozen(h.id("box")) {
			t.Error("it was resumed all the same")
		}
	})
	t.Run("IsResumedByACallWithAutoResume", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box", AutoResume: ptr(true)})
		h.exec("box", "echo kept > file")
		h.pause("box")
		if res := h.exec("box", "cat file"); string(res.Stdout) != "kept\n" {
			t.Errorf("stdout: %q", res.Stdout)
		}
		h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventExec, sandbox.EventPaused, sandbox.EventResumed, sandbox.EventExec)
	})
	t.Run("IsResumedByStartAndByACreateWithItsKey", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		h.pause("box")
		if got, err := h.engine.Start(t.Context(), alice, "box"); err != nil || got.State != sandbox.Running {
			t.Errorf("got %+v, %v", got, err)
		}
		h.pause("box")
		got, created, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "box"})
		if err != nil || created || got.ID != s.ID || got.State != sandbox.Running {
			t.Errorf("got %+v, %v, %v", got, created, err)
		}
	})
	t.Run("IsNotWokenByWhoLooksOn", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box", AutoResume: ptr(true)})
		rec, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "sleep 60"})
		if err != nil {
			t.Fatal(err)
		}
		h.pause("box")
		page, err := h.engine.ListProcesses(t.Context(), alice, "box", process.Query{Running: true})
		if err != nil || len(page.Items) != 1 || page.Items[0].ID != rec.ID {
			t.Errorf("got %+v, %v", page, err)
		}
		if got, err := h.engine.Process(t.Context(), alice, "box", rec.ID); err != nil || got.Result != nil {
			t.Errorf("got %+v, %v", got, err)
		}
		if _, err := h.engine.Get(t.Context(), alice, "box"); err != nil || !h.frozen(s.ID) {
			t.Errorf("%v, frozen: %v", err, h.frozen(s.ID))
		}
	})
	t.Run("EndsInGraceWhenItIsStopped", func(t *testing.T) {
		h := open(t, t.TempDir(), func(o *engine.Options) { o.Defaults.StopGrace = 10 * time.Second })
		s := h.create(engine.CreateRequest{Key: "box"})
		if _, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{
			Shell: "trap 'echo saved > file; exit 0' TERM; touch ready; while :; do sleep 0.01; done"}); err != nil {
			t.Fatal(err)
		}
		h.exec("box", "until [ -e ready ]; do sleep 0.01; done")
		h.pause("box")
		got, err := h.engine.Stop(t.Context(), alice, "box")
		if err != nil || got.State != sandbox.Stopped {
			t.Fatalf("got %+v, %v", got, err)
		}
		if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		if res := h.exec("box", "cat file"); string(res.Stdout) != "saved\n" {
			t.Errorf("stdout: %q", res.Stdout)
		}
		if evs := h.events(s.ID); evs[len(evs)-2].Type != sandbox.EventStarted {
			t.Errorf("events: %v", types(evs))
		}
	})
	t.Run("IsDeletedWithWhatItHolds", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		if _, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "sleep 60"}); err != nil {
			t.Fatal(err)
		}
		h.pause("box")
		if err := h.engine.Delete(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		h.nothing()
		for _, ev := range h.events(s.ID) {
			if !ev.Done {
				t.Errorf("not completed: %+v", ev)
			}
		}
	})
	t.Run("ThatIsKilledSaysSo", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		rec, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "sleep 60"})
		if err != nil {
			t.Fatal(err)
		}
		h.pause("box")
		if err := h.host.Kill(s.ID, runtime.Exit{Cause: sandbox.CauseOOM, Detail: "the evidence"}); err != nil {
			t.Fatal(err)
		}
		h.await("stopped", func() bool { return h.get(s.ID).State == sandbox.Stopped })
		if got := h.get(s.ID); got.StopCause != sandbox.CauseOOM || got.StopDetail != "the evidence; it was paused" {
			t.Errorf("got %s, %q", got.StopCause, got.StopDetail)
		}
		h.await("the end of its command", func() bool { return h.events(s.ID)[2].Done })
		if ev := h.events(s.ID)[2]; ev.ProcessID != rec.ID || ev.Cause != sandbox.CauseOOM {
			t.Errorf("event: %+v", ev)
		}
		_, err = h.engine.Resume(t.Context(), alice, "box")
		wantCode(t, err, fault.State)
		if r := fault.As(err).Remedy; !strings.Contains(r, "start box") {
			t.Errorf("remedy: %q", r)
		}
	})
	t.Run("ThatIsStoppedHasNothingToResume", func(t *testing.T) {
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "box"})
		if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		for what, verb := range map[string]func(context.Context, string) (*sandbox.Sandbox, error){
			"Pause": func(ctx context.Context, ref string) (*sandbox.Sandbox, error) {
				return h.engine.Pause(ctx, alice, ref)
			},
			"Resume": func(ctx context.Context, ref string) (*sandbox.Sandbox, error) {
				return h.engine.Resume(ctx, alice, ref)
			},
		} {
			_, err := verb(t.Context(), "box")
			wantCode(t, err, fault.State)
			if r := fault.As(err).Remedy; !strings.Contains(r, "start box") {
				t.Errorf("%s: remedy %q", what, r)
			}
		}
	})
}

// id returns the id of a key.
func (h *house) id(key string) sandbox.ID {
	h.t.Helper()
	s, err := h.engine.Get(context.Background(), alice, key)
	if err != nil {
		h.t.Fatal(err)
	}
	return s.ID
}
