// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

func changes() sandbox.Changes {
	return sandbox.Changes{
		Files: []sandbox.FileChange{{Path: "a", Action: "created", Size: 3}}, Total: 7, Complete: true,
	}
}

func TestExec(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})

	t.Run("GivesTheResultAndCompletesTheEvent", func(t *testing.T) {
		res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{
			Shell: "cat; echo oops >&2; echo $SECRET | wc -c; exit 3", Stdin: []byte("in\n"), Env: map[string]string{"SECRET": "hunter2"},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.ExitCode != 3 || string(res.Stdout) != "in\n8\n" || string(res.Stderr) != "oops\n" || res.Running || res.ProcessID == "" {
			t.Errorf("got %+v", res)
		}
		evs := h.events(s.ID)
		ev := evs[len(evs)-1]
		if ev.Type != sandbox.EventExec || !ev.Done || ev.OK || ev.ExitCode != 3 || ev.ProcessID != res.ProcessID ||
			ev.Actor != "alice" || ev.User != "sandbox" || ev.Cwd != "/workspace" || ev.StdoutBytes != 5 || ev.StderrBytes != 5 ||
			!strings.HasPrefix(ev.Command, "cat; echo oops") {
			t.Errorf("event: %+v", ev)
		}
		for _, ev := range evs {
			if strings.Contains(ev.Detail+ev.Command, "hunter2") {
				t.Errorf("a secret is in an event: %+v", ev)
			}
		}
		if got := h.get(s.ID); got.ExecCount != 1 || got.ExecTime != ev.Duration || got.ExecTime <= 0 {
			t.Errorf("counters: %d commands, %v; the event says %v", got.ExecCount, got.ExecTime, ev.Duration)
		}
	})
	t.Run("RunsAProgramWithItsArgumentsAsTheyAre", func(t *testing.T) {
		res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Argv: []string{"printf", "%s|", "a b", "it's", ""}}, nil)
		if err != nil || string(res.Stdout) != "a b|it's||" {
			t.Errorf("got %q, %v", res.Stdout, err)
		}
		evs := h.events(s.ID)
		if got, want := evs[len(evs)-1].Command, `printf '%s|' 'a b' 'it'\''s' ''`; got != want {
			t.Errorf("the event's command: got %s, want %s", got, want)
		}
	})
	t.Run("SendsFramesToASinkInOrder", func(t *testing.T) {
		var out bytes.Buffer
		var last int64
		res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "for i in 1 2 3 4 5; do echo $i; done"}, func(f sandbox.Frame) error {
			if f.Seq <= last {
				t.Errorf("frame %d after %d", f.Seq, last)
			}
			last = f.Seq
			out.Write(f.Data)
			return nil
		})
		if err != nil || out.String() != "1\n2\n3\n4\n5\n" || res.Stdout != nil {
			t.Errorf("got %q, collected %q, %v", out.String(), res.Stdout, err)
		}
	})
	t.Run("KeepsTheBoundsAndSaysSo", func(t *testing.T) {
		res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{
			Shell: "head -c 5000 /dev/zero; echo err >&2", MaxStdout: 1000}, nil)
		if err != nil || len(res.Stdout) != 1000 || !res.StdoutTruncated || res.StderrTruncated || res.StdoutBytes != 5000 {
			t.Errorf("got %d bytes, truncated %v %v, of %d; %v", len(res.Stdout), res.StdoutTruncated, res.StderrTruncated, res.StdoutBytes, err)
		}
	})
	t.Run("ATimeoutIsAResult", func(t *testing.T) {
		res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "echo first; sleep 60", Timeout: 300 * time.Millisecond}, nil)
		if err != nil || res.Cause != sandbox.CauseTimeout || res.ExitCode != 137 || string(res.Stdout) != "first\n" {
			t.Errorf("got %+v, %v", res, err)
		}
	})
	t.Run("NamesEveryWrongField", func(t *testing.T) {
		_, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{
			Shell: "a", Argv: []string{"b"}, Cwd: "x\x00", Env: map[string]string{"a-b": ""}, User: "b in",
			Stdin: make([]byte, engine.MaxStdin+1), Timeout: 25 * time.Hour, Wait: -1, MaxStdout: engine.MaxCollected + 1, MaxStderr: -1,
		}, nil)
		wantCode(t, err, fault.Invalid)
		var got []string
		for _, f := range fault.As(err).Fields {
			got = append(got, f.Name)
		}
		want := []string{"command", "env", "stdin", "timeout_seconds", "wait_seconds", "max_stdout", "max_stderr", "cwd", "as_user"}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	})
	t.Run("BoundsTheCommand", func(t *testing.T) {
		for name, r := range map[string]engine.ExecRequest{
			"empty":     {},
			"long":      {Shell: strings.Repeat("x", check.MaxCommand+1)},
			"nul":       {Argv: []string{"a", "b\x00"}},
			"arguments": {Argv: make([]string, check.MaxArgs+1)},
			"program":   {Argv: []string{"", "a"}},
			"argument":  {Argv: []string{"a", strings.Repeat("x", check.MaxCommand)}},
			"variables": {Shell: "a", Env: map[string]string{"A": strings.Repeat("x", check.MaxEnvTotal+1)}},
			"value":     {Shell: "a", Env: map[string]string{"A": "\x00"}},
		} {
			if _, err := h.engine.Exec(t.Context(), alice, "box", r, nil); fault.Of(err) != fault.Invalid {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
	t.Run("ClipsALongCommandInTheEvent", func(t *testing.T) {
		h.exec("box", "true "+strings.Repeat("ä", sandbox.MaxEventCommand))
		evs := h.events(s.ID)
		if got := len(evs[len(evs)-1].Command); got > sandbox.MaxEventCommand {
			t.Errorf("%d bytes", got)
		}
	})
	t.Run("ForbidsRootWhereTheServerDoes", func(t *testing.T) {
		h := open(t, t.TempDir(), func(o *engine.Options) { o.Defaults.ForbidRoot = true })
		h.create(engine.CreateRequest{Key: "box"})
		_, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "id", User: "root"}, nil)
		wantCode(t, err, fault.Denied)
	})
}

func TestExecTellsWhichFilesChanged(t *testing.T) {
	h := open(t, t.TempDir())
	h.faulty.track = true
	s := h.create(engine.CreateRequest{Key: "box"})
	res := h.exec("box", "true")
	want := changes()
	if d := cmp.Diff(want.Files, res.Changes); d != "" || res.ChangesTotal != want.Total || !res.ChangesComplete {
		t.Errorf("result: %+v", res)
	}
	evs := h.events(s.ID)
	ev := evs[len(evs)-1]
	if d := cmp.Diff(want.Files, ev.Changes); d != "" || ev.ChangesTotal != want.Total {
		t.Errorf("event: %+v", ev)
	}
}

func TestExecTellsWhetherTheArtifactsWereLeftAlone(t *testing.T) {
	needs(t, "python3")
	for _, c := range []struct {
		track, ask bool
		made       int
		want       bool
	}{
		{true, true, 0, true},
		{true, true, 1, false},
		{true, false, 0, false},
		{false, true, 0, false}, // nobody can tell
	} {
		h := open(t, t.TempDir())
		h.faulty.track, h.faulty.made = c.track, c.made
		h.create(engine.CreateRequest{Key: "box"})
		res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "true", TellArtifacts: c.ask}, nil)
		if err != nil || res.NoArtifacts != c.want {
			t.Errorf("%+v: a command's: %v, %v", c, res.NoArtifacts, err)
		}
		cell := h.cell("box", code.Request{Code: "1", TellArtifacts: c.ask})
		if cell.NoArtifacts != c.want {
			t.Errorf("%+v: a cell's: %v", c, cell.NoArtifacts)
		}
	}
}

func TestExecThatNobodyWaitsFor(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	finished := func(id string) *sandbox.Event {
		t.Helper()
		var found *sandbox.Event
		h.await("the end of the command", func() bool {
			for _, ev := range h.events(s.ID) {
				if ev.ProcessID == id && ev.Done {
					found = ev
				}
			}
			return found != nil
		})
		return found
	}
	t.Run("GoesOnAfterWait", func(t *testing.T) {
		res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{
			Shell: "echo hello; until [ -e go ]; do sleep 0.02; done; exit 4", Wait: 500 * time.Millisecond}, nil)
		if err != nil || !res.Running || string(res.Stdout) != "hello\n" {
			t.Fatalf("got %+v, %v", res, err)
		}
		rec, err := h.engine.Process(t.Context(), alice, "box", res.ProcessID)
		if err != nil || rec.Result != nil {
			t.Errorf("the process: %+v, %v", rec, err)
		}
		h.exec("box", "touch go")
		if ev := finished(res.ProcessID); ev.ExitCode != 4 {
			t.Errorf("event: %+v", ev)
		}
	})
	t.Run("GoesOnAfterItsCaller", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		res, err := h.engine.Exec(ctx, alice, "box", engine.ExecRequest{Shell: "echo hello; sleep 0.2; exit 5"}, func(sandbox.Frame) error {
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) || res.ProcessID == "" || !res.Running {
			t.Fatalf("got %+v, %v", res, err)
		}
		if ev := finished(res.ProcessID); ev.ExitCode != 5 {
			t.Errorf("event: %+v", ev)
		}
	})
	t.Run("GoesOnAfterItsSinkFailed", func(t *testing.T) {
		full := errors.New("full")
		calls := 0
		res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "echo a; sleep 0.2; echo b; exit 6"}, func(sandbox.Frame) error {
			calls++
			return full
		})
		if !errors.Is(err, full) || !res.Running {
			t.Fatalf("got %+v, %v", res, err)
		}
		if ev := finished(res.ProcessID); ev.ExitCode != 6 || calls != 1 {
			t.Errorf("event: %+v; the sink was called %d times", ev, calls)
		}
	})
	t.Run("IsKilledIfAsked", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		res, err := h.engine.Exec(ctx, alice, "box", engine.ExecRequest{Shell: "echo hello; sleep 60", KillOnDisconnect: true}, func(sandbox.Frame) error {
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %+v, %v", res, err)
		}
		if ev := finished(res.ProcessID); ev.Cause != sandbox.CauseKilled || ev.ExitCode != 137 {
			t.Errorf("event: %+v", ev)
		}
	})
	t.Run("CanBeKilled", func(t *testing.T) {
		res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "sleep 60", Wait: time.Millisecond}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.engine.KillProcess(t.Context(), alice, "box", res.ProcessID); err != nil {
			t.Fatal(err)
		}
		if ev := finished(res.ProcessID); ev.Cause != sandbox.CauseKilled {
			t.Errorf("event: %+v", ev)
		}
		recs, err := h.engine.Processes(t.Context(), alice, "box")
		if err != nil || len(recs) == 0 {
			t.Errorf("Processes: %v, %v", recs, err)
		}
	})
}

// during runs a command that says that it is there and sleeps, and does what is
// to be done meanwhile.
func (h *house) during(ref string, do func()) (engine.ExecResult, error) {
	begun := make(chan struct{})
	go func() {
		<-begun
		do()
	}()
	once := false
	return h.engine.Exec(h.t.Context(), alice, ref, engine.ExecRequest{Shell: "echo hello; sleep 60"}, func(sandbox.Frame) error {
		if !once {
			once = true
			close(begun)
		}
		return nil
	})
}

func TestExecWhoseSandboxGoesDown(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, h *house, s *sandbox.Sandbox)
		want sandbox.Cause
	}{
		"Stopped": {func(t *testing.T, h *house, s *sandbox.Sandbox) {
			if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
				t.Error(err)
			}
		}, sandbox.CauseStopped},
		"Deleted": {func(t *testing.T, h *house, s *sandbox.Sandbox) {
			if err := h.engine.Delete(t.Context(), alice, "box"); err != nil {
				t.Error(err)
			}
		}, sandbox.CauseStopped},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, t.TempDir())
			s := h.create(engine.CreateRequest{Key: "box"})
			done := make(chan struct{})
			res, err := h.during("box", func() { defer close(done); c.do(t, h, s) })
			<-done
			if err != nil || res.Cause != c.want || res.ExitCode < 128 {
				t.Errorf("got %+v, %v; want the cause %s", res, err, c.want)
			}
			h.await("the end of the command", func() bool {
				return h.events(s.ID)[2].Done
			})
			if ev := h.events(s.ID)[2]; ev.Cause != c.want || ev.ExitCode < 128 {
				t.Errorf("event: %+v", ev)
			}
		})
	}
}

func TestASandboxThatGoesDownByItself(t *testing.T) {
	for _, cause := range []sandbox.Cause{sandbox.CauseOOM, sandbox.CauseKilled, sandbox.CauseHost} {
		t.Run(string(cause), func(t *testing.T) {
			h := open(t, t.TempDir())
			s := h.create(engine.CreateRequest{Key: "box"})
			if err := h.host.Kill(s.ID, runtime.Exit{Cause: cause, Detail: "the evidence"}); err != nil {
				t.Fatal(err)
			}
			h.await("stopped", func() bool { return h.get(s.ID).State == sandbox.Stopped })
			got := h.get(s.ID)
			if got.StopCause != cause || got.StopDetail != "the evidence" || got.StoppedAt.IsZero() {
				t.Errorf("got %s, %q, %v", got.StopCause, got.StopDetail, got.StoppedAt)
			}
			evs := h.wantEvents(s.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventStopped)
			if evs[2].Cause != cause || evs[2].Actor != "system" {
				t.Errorf("event: %+v", evs[2])
			}
			if cause == sandbox.CauseHost { // which is nothing that the sandbox did
				h.exec("box", "true")
				return
			}
			_, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "true"}, nil)
			wantCode(t, err, fault.State)
			if !strings.Contains(fault.As(err).Message, string(cause)) || !strings.Contains(fault.As(err).Remedy, "start") {
				t.Errorf("message %q, remedy %q", fault.As(err).Message, fault.As(err).Remedy)
			}
			if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
				t.Fatal(err)
			}
			h.exec("box", "true")
		})
	}
}

var errEnough = errors.New("enough")
