// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/internal/checktest"
	"sandpit.dev/sandbox"
)

// spawn starts a process that has to be started.
func (h *house) spawn(ref string, r engine.StartRequest) sandbox.Process {
	h.t.Helper()
	rec, err := h.engine.StartProcess(h.t.Context(), alice, ref, r)
	if err != nil {
		h.t.Fatalf("StartProcess: %v", err)
	}
	return rec
}

// heard is what a following gave.
type heard struct {
	stdout, stderr bytes.Buffer
	seqs           []int64
	gaps           []engine.Gap
	end            engine.FollowEnd
}

func (g *heard) sink() engine.FollowSink {
	return engine.FollowSink{
		Frame: func(f sandbox.Frame) error {
			g.seqs = append(g.seqs, f.Seq)
			if f.Stream == sandbox.Stderr {
				g.stderr.Write(f.Data)
			} else {
				g.stdout.Write(f.Data)
			}
			return nil
		},
		Gap: func(gap engine.Gap) error { g.gaps = append(g.gaps, gap); return nil },
	}
}

// follow follows a process to where the request says.
func (h *house) follow(ref, id string, r engine.FollowRequest) *heard {
	h.t.Helper()
	f, err := h.engine.Follow(h.t.Context(), alice, ref, id, r)
	if err != nil {
		h.t.Fatalf("Follow: %v", err)
	}
	defer f.Close()
	g := new(heard)
	if g.end, err = f.Run(h.t.Context(), g.sink()); err != nil {
		h.t.Fatalf("Run: %v", err)
	}
	return g
}

// say writes to a process's input, which has to take it.
func (h *house) say(ref, id, text string, end bool) {
	h.t.Helper()
	got, err := h.engine.WriteInput(h.t.Context(), alice, ref, id, engine.InputRequest{Data: []byte(text), Offset: -1, End: end})
	if err != nil || got.Bytes != len(text) {
		h.t.Fatalf("WriteInput %q: %+v, %v", text, got, err)
	}
}

func TestStartProcess(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})

	t.Run("AnswersAtOnceAndCompletesTheEventAtTheEnd", func(t *testing.T) {
		rec := h.spawn("box", engine.StartRequest{Shell: "cat; exit 3", StreamStdin: true})
		if rec.State != sandbox.ProcessRunning || rec.ID == "" || rec.PID == 0 || rec.Shell != "cat; exit 3" {
			t.Errorf("got %+v", rec)
		}
		evs := h.events(s.ID)
		if ev := evs[len(evs)-1]; ev.Done || ev.ProcessID != rec.ID || ev.Type != sandbox.EventExec {
			t.Errorf("while it runs: %+v", ev)
		}
		h.say("box", rec.ID, "hello\n", true)
		done, err := h.engine.WaitProcess(t.Context(), alice, "box", rec.ID, time.Minute)
		if err != nil || done.Result == nil || done.Result.ExitCode != 3 {
			t.Fatalf("WaitProcess: %+v, %v", done.Result, err)
		}
		h.await("the event", func() bool {
			evs = h.events(s.ID)
			return evs[len(evs)-1].Done
		})
		if ev := evs[len(evs)-1]; ev.ExitCode != 3 || ev.StdoutBytes != 6 {
			t.Errorf("after it: %+v", ev)
		}
	})
	t.Run("WithoutInputItReadsAnEnd", func(t *testing.T) {
		rec := h.spawn("box", engine.StartRequest{Shell: "cat; echo over"})
		if got := h.follow("box", rec.ID, engine.FollowRequest{}); got.stdout.String() != "over\n" {
			t.Errorf("got %q", got.stdout.String())
		}
		_, err := h.engine.WriteInput(t.Context(), alice, "box", rec.ID, engine.InputRequest{Data: []byte("x"), Offset: -1})
		wantCode(t, err, fault.State)
	})
	t.Run("AProgramThatIsNoneHasEnded", func(t *testing.T) {
		rec := h.spawn("box", engine.StartRequest{Argv: []string{"/nosuch"}})
		done, err := h.engine.WaitProcess(t.Context(), alice, "box", rec.ID, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		checktest.Some(t, "Result", done.Result)
		checktest.Equal(t, "Result.ExitCode", done.Result.ExitCode, 127)
	})
	t.Run("ATerminalCanBeWrittenToAndResized", func(t *testing.T) {
		rec := h.spawn("box", engine.StartRequest{
			Shell: "trap 'stty size' WINCH; echo ready; while ! read x; do :; done; echo got $x", Terminal: &engine.TerminalSize{},
		})
		for _, size := range [][2]int{{0, 0}, {1001, 5}, {-1, 10}} {
			wantCode(t, h.engine.ResizeProcess(t.Context(), alice, "box", rec.ID, size[0], size[1]), fault.Invalid)
		}
		if err := h.engine.ResizeProcess(t.Context(), alice, "box", rec.ID, 100, 30); err != nil {
			t.Error(err)
		}
		h.say("box", rec.ID, "it\n", false)
		if got := h.follow("box", rec.ID, engine.FollowRequest{}); !strings.Contains(got.stdout.String(), "got it") {
			t.Errorf("got %q", got.stdout.String())
		}
		plain := h.spawn("box", engine.StartRequest{Shell: "sleep 600"})
		wantCode(t, h.engine.ResizeProcess(t.Context(), alice, "box", plain.ID, 80, 24), fault.State)
		if err := h.engine.KillProcess(t.Context(), alice, "box", plain.ID); err != nil {
			t.Error(err)
		}
	})
	t.Run("RefusesWhatMakesNoSense", func(t *testing.T) {
		for name, r := range map[string]engine.StartRequest{
			"NoCommand":    {},
			"TwoInputs":    {Shell: "cat", Stdin: []byte("x"), StreamStdin: true},
			"TooMuchKept":  {Shell: "cat", MaxStdout: engine.MaxStreamed + 1},
			"TooWide":      {Shell: "cat", Terminal: &engine.TerminalSize{Cols: 1001}},
			"NegativeTime": {Shell: "cat", Timeout: -1},
		} {
			_, err := h.engine.StartProcess(t.Context(), alice, "box", r)
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestFollow(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})

	t.Run("HistoryThenLifeThenTheEndForEveryone", func(t *testing.T) {
		rec := h.spawn("box", engine.StartRequest{Shell: "while read x; do echo line $x; echo err $x >&2; done; exit 5", StreamStdin: true})
		var wg sync.WaitGroup
		all := make([]*heard, engine.MaxFollowers)
		for i := range 200 {
			h.say("box", rec.ID, fmt.Sprintln(i), false)
			if i%13 == 0 {
				wg.Go(func() { all[i/13] = h.follow("box", rec.ID, engine.FollowRequest{}) })
			}
		}
		h.say("box", rec.ID, "", true)
		wg.Wait()
		for i, g := range all {
			if n := strings.Count(g.stdout.String(), "\n"); n != 200 || !g.end.Ended || g.end.Result.ExitCode != 5 {
				t.Errorf("follower %d: %d lines, %+v", i, n, g.end)
			}
			for j, seq := range g.seqs {
				if seq != int64(j+1) {
					t.Fatalf("follower %d: frame %d has the number %d", i, j, seq)
				}
			}
		}
		whole := all[0]
		for _, at := range []int64{1, int64(len(whole.seqs) / 2), int64(len(whole.seqs))} {
			g := h.follow("box", rec.ID, engine.FollowRequest{Cursor: at})
			if len(g.seqs) != len(whole.seqs)-int(at) || !strings.HasSuffix(whole.stdout.String(), g.stdout.String()) {
				t.Errorf("after %d: %d frames", at, len(g.seqs))
			}
		}
		_, err := h.engine.Follow(t.Context(), alice, "box", rec.ID, engine.FollowRequest{Cursor: int64(len(whole.seqs)) + 1})
		wantCode(t, err, fault.Invalid)
		if f := fault.As(err); len(f.Fields) != 1 || f.Fields[0].Name != "cursor" {
			t.Errorf("a cursor from the future: %+v", f)
		}
		_, err = h.engine.Follow(t.Context(), alice, "box", rec.ID, engine.FollowRequest{Cursor: -1})
		wantCode(t, err, fault.Invalid)
		_, err = h.engine.Follow(t.Context(), alice, "box", sandbox.NewProcessID(), engine.FollowRequest{})
		wantCode(t, err, fault.NotFound)
		_, err = h.engine.Follow(t.Context(), mary, "box", rec.ID, engine.FollowRequest{})
		wantCode(t, err, fault.NotFound)
		wantCode(t, h.engine.SignalProcess(t.Context(), alice, "box", rec.ID, 15, false), fault.State)
	})
	t.Run("OnceDoesNotWait", func(t *testing.T) {
		rec := h.spawn("box", engine.StartRequest{Shell: "echo one; cat", StreamStdin: true})
		f, err := h.engine.Follow(t.Context(), alice, "box", rec.ID, engine.FollowRequest{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		stop := errors.New("enough")
		if _, err := f.Run(t.Context(), engine.FollowSink{Frame: func(sandbox.Frame) error { return stop }}); !errors.Is(err, stop) {
			t.Fatalf("a sink's error: got %v", err)
		}
		g := h.follow("box", rec.ID, engine.FollowRequest{Once: true})
		if g.stdout.String() != "one\n" || g.end.Ended || g.end.LastSeq != 1 {
			t.Errorf("got %q, %+v", g.stdout.String(), g.end)
		}
		if g := h.follow("box", rec.ID, engine.FollowRequest{Once: true, Cursor: 1}); len(g.seqs) != 0 {
			t.Errorf("after the last: got %v", g.seqs)
		}
		if err := h.engine.SignalProcess(t.Context(), alice, "box", rec.ID, 15, true); err != nil {
			t.Fatal(err)
		}
		if g := h.follow("box", rec.ID, engine.FollowRequest{}); !g.end.Ended || g.end.Result.Signal != "SIGTERM" {
			t.Errorf("got %+v", g.end)
		}
	})
	t.Run("WhatTheLogDropsIsAGap", func(t *testing.T) {
		rec := h.spawn("box", engine.StartRequest{Shell: "printf 0123456789; printf ab >&2", MaxStdout: 4})
		g := h.follow("box", rec.ID, engine.FollowRequest{})
		checktest.Equal(t, "g.stdout.String()", g.stdout.String(), "0123")
		checktest.Len(t, "gaps", g.gaps, 1)
		checktest.Equal(t, "gaps[0].Stream", g.gaps[0].Stream, sandbox.Stdout)
		checktest.Equal(t, "gaps[0].Bytes", g.gaps[0].Bytes, 6)
	})
	t.Run("ASlowOneHoldsNobodyUp", func(t *testing.T) {
		const size = 4 << 20
		rec := h.spawn("box", engine.StartRequest{Shell: fmt.Sprintf("head -c %d /dev/zero", size)})
		f, err := h.engine.Follow(t.Context(), alice, "box", rec.ID, engine.FollowRequest{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		blocked, total := make(chan struct{}), 0
		go func() {
			defer close(blocked)
			// The sink below takes nothing until this has seen the end.
			if done, err := h.engine.WaitProcess(t.Context(), alice, "box", rec.ID, time.Minute); err != nil || done.Result == nil {
				t.Errorf("WaitProcess: %+v, %v", done, err)
			}
		}()
		end, err := f.Run(t.Context(), engine.FollowSink{Frame: func(f sandbox.Frame) error {
			<-blocked
			total += len(f.Data)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		checktest.Equal(t, "total", total, size)
		checktest.Equal(t, "Result.StdoutTruncated", end.Result.StdoutTruncated, false)
	})
	t.Run("EndsWithItsCallerAndTheProcessGoesOn", func(t *testing.T) {
		rec := h.spawn("box", engine.StartRequest{Shell: "cat", StreamStdin: true})
		f, err := h.engine.Follow(t.Context(), alice, "box", rec.ID, engine.FollowRequest{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := f.Run(ctx, engine.FollowSink{Frame: ignoreFrame}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if rec, err := h.engine.WaitProcess(t.Context(), alice, "box", rec.ID, time.Millisecond); err != nil || rec.Result != nil {
			t.Errorf("got %+v, %v", rec.Result, err)
		}
	})
}

func ignoreFrame(sandbox.Frame) error { return nil }

func TestProcessesOutliveTheServer(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	rec := h.spawn("box", engine.StartRequest{Shell: "cat; exit 6", StreamStdin: true})
	h.say("box", rec.ID, "before\n", false)
	f, err := h.engine.Follow(t.Context(), alice, "box", rec.ID, engine.FollowRequest{})
	if err != nil {
		t.Fatal(err)
	}
	g := new(heard)
	first, over := make(chan struct{}), make(chan error, 1)
	go func() {
		defer f.Close()
		sink := g.sink()
		frame := sink.Frame
		sink.Frame = func(fr sandbox.Frame) error { err := frame(fr); close(first); return err }
		_, err := f.Run(context.Background(), sink)
		over <- err
	}()
	<-first
	h.restart()
	wantCode(t, <-over, fault.Unavailable)
	// The piece that was answered is sent again, as by a client that lost the answer.
	got, err := h.engine.WriteInput(t.Context(), alice, "box", rec.ID, engine.InputRequest{Data: []byte("before\nafter\n"), End: true})
	if err != nil || got.Bytes != 13 || got.Total != 13 {
		t.Errorf("WriteInput: %+v, %v", got, err)
	}
	rest := h.follow("box", rec.ID, engine.FollowRequest{Cursor: g.seqs[0]})
	if all := g.stdout.String() + rest.stdout.String(); all != "before\nafter\n" || rest.end.Result.ExitCode != 6 {
		t.Errorf("got %q, %+v", all, rest.end)
	}
	h.await("the event", func() bool {
		evs := h.events(s.ID)
		last := evs[len(evs)-1]
		return last.ProcessID == rec.ID && last.Done && last.ExitCode == 6
	})
}

// The row comes before the agent hears of the process, and stands after it has let go
// of it: neither tells a waiter of an end.
func TestAWaiterBeforeTheStart(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.end()
	begin := make(chan struct{})
	h.serve(func(o *engine.Options) {
		o.Checkpoint = func(name string) {
			if name == "exec.intent" {
				<-begin
			}
		}
	})
	s := h.create(engine.CreateRequest{Key: "box"})
	started := make(chan error, 1)
	go func() {
		_, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "exit 3"})
		started <- err
	}()
	var id string
	h.await("the intent", func() bool {
		evs := h.events(s.ID)
		id = evs[len(evs)-1].ProcessID
		return id != ""
	})
	rec, err := h.engine.WaitProcess(t.Context(), alice, "box", id, 10*time.Millisecond)
	if err != nil || rec.Result != nil {
		t.Errorf("before the start: %+v, %v", rec, err)
	}
	time.AfterFunc(100*time.Millisecond, func() { close(begin) })
	rec, err = h.engine.WaitProcess(t.Context(), alice, "box", id, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	checktest.Some(t, "Result", rec.Result)
	checktest.Equal(t, "Result.ExitCode", rec.Result.ExitCode, 3)
	checktest.Equal(t, "Result.Cause", rec.Result.Cause, sandbox.CauseNone)
	if err := <-started; err != nil {
		t.Error(err)
	}
}

func TestListProcesses(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	var ids []string
	for i := range 5 {
		ids = append(ids, h.exec("box", fmt.Sprintf("exit %d", i)).ProcessID)
	}
	running := h.spawn("box", engine.StartRequest{Shell: "sleep 600"})
	ids = append(ids, running.ID)
	list := func(q process.Query) (got []string) {
		t.Helper()
		for {
			page, err := h.engine.ListProcesses(t.Context(), alice, "box", q)
			if err != nil {
				t.Fatal(err)
			}
			if q.Limit > 0 && len(page.Items) > q.Limit {
				t.Errorf("a page of %d has %d", q.Limit, len(page.Items))
			}
			for _, r := range page.Items {
				got = append(got, r.ID)
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				return got
			}
		}
	}
	check := func(name string, got, want []string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	newest := []string{ids[5], ids[4], ids[3], ids[2], ids[1], ids[0]}
	check("all", list(process.Query{}), ids)
	check("by pages", list(process.Query{Limit: 2}), ids)
	check("newest first", list(process.Query{Limit: 4, Newest: true}), newest)
	check("running", list(process.Query{Running: true}), ids[5:])
	for _, q := range []process.Query{{Limit: -1}, {Limit: 1001}, {Cursor: "nonsense"}, {Cursor: "12.x"}} {
		_, err := h.engine.ListProcesses(t.Context(), alice, "box", q)
		wantCode(t, err, fault.Invalid)
	}
	if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	// Of a sandbox that is down, the events tell.
	check("stopped", list(process.Query{Limit: 4}), ids)
	rec, err := h.engine.Process(t.Context(), alice, "box", running.ID)
	if err != nil {
		t.Fatal(err)
	}
	checktest.Some(t, "Result", rec.Result)
	checktest.Equal(t, "Result.Cause", rec.Result.Cause, sandbox.CauseStopped)
	if rec, err := h.engine.Process(t.Context(), alice, "box", ids[3]); err != nil {
		t.Error(err)
	} else {
		checktest.Equal(t, "Result.ExitCode", rec.Result.ExitCode, 3)
		checktest.Equal(t, "Shell", rec.Shell, "exit 3")
	}
	_, err = h.engine.Process(t.Context(), alice, "box", sandbox.NewProcessID())
	wantCode(t, err, fault.NotFound)
	_, err = h.engine.Follow(t.Context(), alice, "box", ids[0], engine.FollowRequest{})
	wantCode(t, err, fault.State)
}
