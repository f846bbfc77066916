// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/engine/update"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/memory"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

// What the process that is to die reads from its environment.
const (
	crashDir   = "SANDPIT_TEST_CRASH_DIR"
	crashPoint = "SANDPIT_TEST_CRASH_POINT"
)

// crash is the program of that process: a server with a store and a host in
// dir, that does the verb of the point and is killed when it comes there.
func crash(dir, point string) int {
	err := doCrash(dir, point)
	fmt.Fprintln(os.Stderr, "the process should have been killed at", point, err)
	return 3
}

func doCrash(dir, point string) error {
	ctx := context.Background()
	host, err := memory.Open(filepath.Join(dir, "host"), memory.Options{})
	if err != nil {
		return err
	}
	st, err := sqlstore.Open(ctx, sqlstore.Options{Path: filepath.Join(dir, "records.db")})
	if err != nil {
		return err
	}
	var armed atomic.Bool
	o := options(st, host.Driver())
	o.Archives = archiveOf(dir)
	at := point
	if rest, ok := strings.CutPrefix(point, "claim."); ok { // of a create that finds a full pool
		o.Pools, at = []prewarm.Pool{{Image: "python", Min: 1}}, "create."+rest
	}
	if rest, ok := strings.CutPrefix(point, "restart."); ok { // at a point of its stop, of its start, or between
		at = rest
	}
	away, rest, isAway := strings.Cut(strings.TrimPrefix(point, archiving), ":")
	if isAway = isAway && strings.HasPrefix(point, archiving); isAway {
		at = rest
	}
	kept, rest, isKept := "", "", false
	if rest, isKept = strings.CutPrefix(point, "kept:"); isKept {
		kept, at, _ = strings.Cut(rest, ":")
	}
	if strings.HasSuffix(kept, stepByStep) {
		o.Runtimes["memory"] = &faulty{Driver: host.Driver()} // whose instances are no runtime.Restorer
	}
	if kept == expiryOfAVolume {
		o.JanitorRound = 10 * time.Millisecond
	}
	if strings.HasPrefix(point, "pool.") {
		o.Pools = []prewarm.Pool{{Image: "python", Min: 1}}
		armed.Store(true)
	}
	o.Checkpoint = func(name string) {
		if armed.Load() && name == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	e, err := engine.New(o)
	if err != nil {
		return err
	}
	codes := code.New(e, code.Options{Checkpoint: o.Checkpoint})
	go func() { _ = e.Run(ctx) }()
	if err := e.WaitReady(ctx); err != nil {
		return err
	}
	if isAway {
		return crashArchiving(ctx, e, away, &armed)
	}
	if isKept {
		return crashKept(ctx, e, kept, &armed)
	}
	verb, _, _ := strings.Cut(point, ".")
	switch verb {
	case "pool":
		select {} // it is filled by itself
	case "claim":
		for { // until it is full
			if info, err := e.Info(ctx, alice); err != nil {
				return err
			} else if info.Pools[0].Ready == 1 {
				break
			}
			<-time.After(time.Millisecond)
		}
		armed.Store(true)
		_, _, err := e.Create(ctx, alice, engine.CreateRequest{Key: "box"})
		return err
	}
	if verb == "later" { // of a create whose image is made first
		at = "create." + strings.TrimPrefix(point, "later.")
		armed.Store(true)
		if _, _, err := e.Create(ctx, alice, engine.CreateRequest{Key: "box", Later: madeAtOnce}); err != nil {
			return err
		}
		select {} // it is answered before it is made
	}
	if verb != "create" {
		r := engine.CreateRequest{Key: "box"}
		if verb == "restart" {
			r.AutoDelete = ptr(true) // it is not deleted for that stop
		}
		if _, _, err := e.Create(ctx, alice, r); err != nil {
			return err
		}
	}
	if verb == "start" {
		if _, err := e.Stop(ctx, alice, "box"); err != nil {
			return err
		}
	}
	if verb == "resume" {
		if _, err := e.Pause(ctx, alice, "box"); err != nil {
			return err
		}
	}
	var process sandbox.Process
	if verb == "signal" {
		if process, err = e.StartProcess(ctx, alice, "box", engine.StartRequest{Shell: "trap '' TERM; read x", StreamStdin: true}); err != nil {
			return err
		}
	}
	armed.Store(true)
	switch verb {
	case "signal":
		err = e.SignalProcess(ctx, alice, "box", process.ID, syscall.SIGTERM, false)
	case "pause":
		_, err = e.Pause(ctx, alice, "box")
	case "resume":
		_, err = e.Resume(ctx, alice, "box")
	case "update":
		_, err = e.Update(ctx, alice, "box", update.Patch{CPU: ptr(2.0)})
	case "create":
		_, _, err = e.Create(ctx, alice, engine.CreateRequest{Key: "box"})
	case "start":
		_, err = e.Start(ctx, alice, "box")
	case "stop":
		_, err = e.Stop(ctx, alice, "box")
	case "restart":
		_, err = e.Restart(ctx, alice, "box")
	case "delete":
		err = e.Delete(ctx, alice, "box")
	case "exec":
		if _, err = e.Exec(ctx, alice, "box", engine.ExecRequest{Shell: "echo hello"}, nil); err == nil {
			err = e.Recorded(ctx) // it is killed behind the answer
		}
	case "code":
		if _, err = codes.RunCode(ctx, alice, "box", code.Request{Code: "1"}, nil); err == nil {
			err = e.Recorded(ctx)
		}
	}
	return err
}

// TestAServerThatIsKilled kills a server with SIGKILL at every commit point of
// every verb, and looks at what the next one makes of it. The host is part of
// the process here, so that whatever was up is down afterwards.
func TestAServerThatIsKilled(t *testing.T) {
	skiptest.WithShort(t, "a server is killed at each step of each verb")
	const gone = sandbox.Deleted
	none := sandbox.CauseNone
	for _, c := range []struct {
		point string
		state sandbox.State
		cause sandbox.Cause
		last  sandbox.EventType // the last event
	}{
		{"create.intent", gone, none, sandbox.EventFailed},
		{"create.done", gone, none, sandbox.EventFailed},
		{"create.outcome", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"stop.intent", sandbox.Stopped, sandbox.CauseUser, sandbox.EventStopped},
		{"stop.done", sandbox.Stopped, sandbox.CauseUser, sandbox.EventStopped},
		{"stop.outcome", sandbox.Stopped, sandbox.CauseUser, sandbox.EventStopped},
		{"pause.intent", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"pause.done", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"pause.outcome", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"resume.intent", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"resume.done", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"resume.outcome", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"update.done", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"update.outcome", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"start.intent", sandbox.Stopped, sandbox.CauseUser, sandbox.EventFailed},
		{"start.done", sandbox.Stopped, sandbox.CauseUser, sandbox.EventFailed},
		{"start.outcome", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"restart.stop.intent", sandbox.Stopped, sandbox.CauseRestart, sandbox.EventStopped},
		{"restart.stop.done", sandbox.Stopped, sandbox.CauseRestart, sandbox.EventStopped},
		{"restart.restart.stopped", sandbox.Stopped, sandbox.CauseRestart, sandbox.EventStopped},
		{"restart.start.intent", sandbox.Stopped, sandbox.CauseRestart, sandbox.EventFailed},
		{"restart.start.done", sandbox.Stopped, sandbox.CauseRestart, sandbox.EventFailed},
		{"delete.intent", gone, none, sandbox.EventDeleted},
		{"delete.done", gone, none, sandbox.EventDeleted},
		{"delete.outcome", gone, none, sandbox.EventDeleted},
		{"exec.intent", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"exec.started", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"exec.ended", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"exec.answered", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"exec.outcome", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"code.intent", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"code.ended", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
		{"code.outcome", sandbox.Stopped, sandbox.CauseHost, sandbox.EventStopped},
	} {
		t.Run(c.point, func(t *testing.T) {
			isCode := strings.HasPrefix(c.point, "code.")
			if isCode {
				needs(t, "python3")
			}
			dir := t.TempDir()
			killAt(t, dir, c.point)
			h := open(t, dir)
			evs := h.events("")
			if last := evs[len(evs)-1]; last.Type != c.last {
				t.Errorf("the last event: got %+v, want a %s", last, c.last)
			}
			if c.state == gone {
				h.nothing()
			} else {
				s := h.get(evs[0].Sandbox)
				if s == nil || s.State != c.state || s.StopCause != c.cause {
					t.Fatalf("got %+v, want %s by %s", s, c.state, c.cause)
				}
				if got := h.instances(); !slices.Equal(got, []sandbox.ID{s.ID}) {
					t.Errorf("instances: %v", got)
				}
			}
			for _, ev := range evs {
				if !ev.Done {
					t.Errorf("an event is not completed: %+v", ev)
				}
				if ev.Type == sandbox.EventExec {
					wantExec(t, c.point, ev)
				}
			}
			// Whatever it was, the key is of use.
			s, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "box"})
			if err != nil || s.State != sandbox.Running {
				t.Fatalf("the key afterwards: %+v, %v", s, err)
			}
			h.exec("box", "true")
			for _, ev := range evs {
				if ev.Type != sandbox.EventExec || ev.Sandbox != s.ID {
					continue
				}
				rec, err := h.engine.Process(t.Context(), alice, "box", ev.ProcessID)
				if err != nil || rec.Result == nil || rec.Result.ExitCode != ev.ExitCode || rec.Result.Cause != ev.Cause {
					t.Errorf("a later read: got %+v (%v), the event has %+v", rec, err, ev)
				}
			}
			if isCode {
				if res := h.cell("box", code.Request{Code: "2"}); value(res) != "2" || res.Restarted == "" {
					t.Errorf("the next cell: %+v", res)
				}
			}
		})
	}
}

func wantExec(t *testing.T, point string, ev *sandbox.Event) {
	t.Helper()
	if point == "exec.outcome" {
		if ev.ExitCode != 0 || ev.Cause != sandbox.CauseNone || !ev.OK {
			t.Errorf("the command had ended: %+v", ev)
		}
		return
	}
	begun := point == "exec.started" || point == "exec.ended" || point == "exec.answered"
	if begun && ev.ExitCode == 0 && ev.Cause == sandbox.CauseNone && ev.OK {
		return // its log had its end before the agent died with the server
	}
	if ev.ExitCode != 137 || ev.Cause != sandbox.CauseHost || ev.OK {
		t.Errorf("the command was cut off: %+v", ev)
	}
}

func killAt(t *testing.T, dir, point string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it says where it is, and is not taken for killed at the point
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashPoint+"="+point)
	out, err := cmd.CombinedOutput()
	ee, ok := errors.AsType[*exec.ExitError](err)
	if !ok || ee.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the server was not killed: %v\n%s", err, out)
	}
}

// What a crash left of one of ours goes, also where it took all events. What this store has never
// heard of is another store's, which may come back, and its disk stays.
func TestAnInstanceThatNoRecordMentions(t *testing.T) {
	unrecorded := sandbox.NewID()
	h := open(t, t.TempDir())
	kept := h.create(engine.CreateRequest{})
	h.end()
	left, foreign := sandbox.NewID(), sandbox.NewID()
	for _, id := range []sandbox.ID{left, foreign, unrecorded} {
		if _, err := h.host.Driver().Create(t.Context(), runtime.Spec{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	err := h.store.Update(t.Context(), func(tx store.Tx) error {
		return tx.Events().Append(&sandbox.Event{
			Sandbox: left, Project: "default", Type: sandbox.EventCreated, At: time.Now(), Done: true,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	h.serve(func(o *engine.Options) {
		o.Runtimes["memory"] = &persister{o.Runtimes["memory"], unrecorded}
	})
	want := []sandbox.ID{kept.ID, foreign}
	slices.Sort(want)
	got := h.instances()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("instances: got %v, want those of the record and of another store, %v", got, want)
	}
	h.exec(string(kept.ID), "true")
}

// persister is a driver that says of one instance that a crash took its record.
type persister struct {
	runtime.Driver
	unrecorded sandbox.ID
}

func (p *persister) Unrecorded(id sandbox.ID) (bool, error) { return id == p.unrecorded, nil }

func TestARestart(t *testing.T) {
	t.Run("IsNothingToARunningSandbox", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		h.restart()
		h.exec("box", "true")
		h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventExec)
	})
	t.Run("FollowsACommandThatStillRuns", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{
			Shell: "echo; until [ -e go ]; do sleep 0.02; done; exit 4"}, stopAtFirst)
		if !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		h.restart()
		if ev := h.events(s.ID)[2]; ev.Done {
			t.Fatalf("the event is completed: %+v", ev)
		}
		h.exec("box", "touch go")
		h.await("the end of the command", func() bool { return h.events(s.ID)[2].Done })
		if ev := h.events(s.ID)[2]; ev.ProcessID != res.ProcessID || ev.ExitCode != 4 || ev.Actor != "alice" {
			t.Errorf("event: %+v", ev)
		}
		if got := h.get(s.ID); got.ExecCount != 2 {
			t.Errorf("%d commands counted, want 2", got.ExecCount)
		}
	})
	t.Run("TakesTheResultOfACommandThatEndedMeanwhile", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "echo; sleep 0.3; exit 5"}, stopAtFirst)
		if !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		h.end()
		awaitExit(t, h, s.ID, res.ProcessID)
		h.serve()
		h.await("the end of the command", func() bool { return h.events(s.ID)[2].Done })
		if ev := h.events(s.ID)[2]; ev.ExitCode != 5 {
			t.Errorf("event: %+v", ev)
		}
	})
	t.Run("EndsAWaitingCallAndSaysThatTheCommandGoesOn", func(t *testing.T) {
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "box"})
		res, err := h.during("box", h.end)
		wantUnavailable(t, err)
		if !res.Running || res.ProcessID == "" {
			t.Errorf("got %+v", res)
		}
	})
	t.Run("RefusesVerbsBeforeAndAfter", func(t *testing.T) {
		h := open(t, t.TempDir())
		h.end()
		_, err := h.engine.Get(t.Context(), alice, "box")
		wantUnavailable(t, err)
		wantUnavailable(t, h.engine.Ready())
		e, err := engine.New(options(h.store, h.faulty))
		if err != nil {
			t.Fatal(err)
		}
		wantUnavailable(t, e.Ready())
		_, err = e.List(t.Context(), alice, engine.SandboxesRequest{})
		wantUnavailable(t, err)
	})
}
