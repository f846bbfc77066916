// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

func TestTerminal(t *testing.T) {
	t.Parallel()
	ended := func(t *testing.T, h *house, id sandbox.ID) *sandbox.Event {
		t.Helper()
		var ev *sandbox.Event
		h.await("the end of the terminal", func() bool {
			for _, e := range h.events(id) {
				if e.Type == sandbox.EventTerminal {
					ev = e
				}
			}
			return ev.Done
		})
		return ev
	}
	t.Run("IsRecordedWhenItsCommandEnds", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		term, err := h.engine.Terminal(t.Context(), alice, "box", engine.TerminalRequest{Shell: "read x; echo got $x; exit 3"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := term.Write([]byte("hello\n")); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		for {
			f, err := term.Next(t.Context())
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			out.Write(f.Data)
		}
		if !bytes.Contains(out.Bytes(), []byte("got hello")) || term.Result().ExitCode != 3 {
			t.Errorf("got %q, %+v", out.String(), term.Result())
		}
		if err := term.Close(); err != nil {
			t.Error(err)
		}
		if ev := ended(t, h, s.ID); ev.ExitCode != 3 || ev.Actor != "alice" || ev.ProcessID != term.ID() {
			t.Errorf("event: %+v", ev)
		}
	})
	t.Run("IsHungUpOnWhenClosed", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		term, err := h.engine.Terminal(t.Context(), alice, "box", engine.TerminalRequest{Shell: "exec sleep 60"})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := term.Close(); err != nil {
				t.Error(err)
			}
		}
		if ev := ended(t, h, s.ID); ev.ExitCode < 128 {
			t.Errorf("event: %+v", ev)
		}
	})
	t.Run("EndsWithTheServer", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		if _, err := h.engine.Terminal(t.Context(), alice, "box", engine.TerminalRequest{}); err != nil {
			t.Fatal(err)
		}
		h.end()
		ended(t, h, s.ID)
	})
	t.Run("ChecksItsFields", func(t *testing.T) {
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "box"})
		_, err := h.engine.Terminal(t.Context(), alice, "box", engine.TerminalRequest{
			Shell: "a", Argv: []string{"b"}, Cols: 2000, Rows: 2000, Term: "\x1b", User: "a/b"})
		wantCode(t, err, fault.Invalid)
		if n := len(fault.As(err).Fields); n != 5 {
			t.Errorf("%d fields: %v", n, err)
		}
	})
}

// screen collects what a following of a terminal gives, until it has seen text or the
// command has ended.
type screen struct {
	text string
	seqs []int64
	gaps int
}

var errSeen = errors.New("it was seen")

func (s *screen) follow(h *house, id, until string, r engine.FollowRequest) (engine.FollowEnd, error) {
	h.t.Helper()
	g, err := h.engine.Follow(h.t.Context(), alice, "box", id, r)
	if err != nil {
		return engine.FollowEnd{}, err
	}
	defer g.Close()
	text := []byte(s.text)
	defer func() { s.text = string(text) }()
	return g.Run(h.t.Context(), engine.FollowSink{
		Frame: func(f sandbox.Frame) error {
			before := max(0, len(text)-len(until))
			text = append(text, f.Data...)
			s.seqs = append(s.seqs, f.Seq)
			if until != "" && bytes.Contains(text[before:], []byte(until)) {
				return errSeen
			}
			return nil
		},
		Gap: func(engine.Gap) error { s.gaps++; return nil },
	})
}

func TestTerminalThatStays(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, command string) (*house, string) {
		t.Helper()
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "box"})
		rec, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: command, Terminal: &engine.TerminalSize{}})
		if err != nil {
			t.Fatal(err)
		}
		return h, rec.ID
	}
	write := func(t *testing.T, h *house, id, text string) {
		t.Helper()
		if _, err := h.engine.WriteInput(t.Context(), alice, "box", id, engine.InputRequest{Data: []byte(text), Offset: -1}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("IsJoinedByManyAndByAnotherServer", func(t *testing.T) {
		h, id := start(t, "stty -echo; echo ready; read x; echo got $x; read y; stty size; exit 5")
		var one screen
		if _, err := one.follow(h, id, "ready", engine.FollowRequest{}); !errors.Is(err, errSeen) {
			t.Fatal(err)
		}
		write(t, h, id, "it\n")
		var two screen
		if _, err := two.follow(h, id, "got it\r\n", engine.FollowRequest{Recent: 1000}); !errors.Is(err, errSeen) || !strings.Contains(two.text, "ready") {
			t.Fatalf("%q, %v", two.text, err)
		}
		h.restart()
		page, err := h.engine.ListProcesses(t.Context(), alice, "box", process.Query{Running: true, Tty: true})
		if err != nil || len(page.Items) != 1 || page.Items[0].ID != id {
			t.Errorf("%+v, %v", page, err)
		}
		for size, want := range map[[2]int]fault.Code{{0, 0}: fault.Invalid, {1001, 24}: fault.Invalid, {1000, 1}: "", {-1, 5}: fault.Invalid} {
			err := h.engine.ResizeProcess(t.Context(), alice, "box", id, size[0], size[1])
			if err != nil || want != "" {
				wantCode(t, err, want)
			}
		}
		for _, size := range [][2]int{{100, 30}, {77, 22}} { // the last one wins
			if err := h.engine.ResizeProcess(t.Context(), alice, "box", id, size[0], size[1]); err != nil {
				t.Fatal(err)
			}
		}
		write(t, h, id, "\n")
		var three screen
		end, err := three.follow(h, id, "", engine.FollowRequest{Cursor: two.seqs[len(two.seqs)-1]})
		if err != nil || !end.Ended || end.Result.ExitCode != 5 || three.text != "22 77\r\n" {
			t.Errorf("%q, %+v, %v", three.text, end, err)
		}
		wantCode(t, h.engine.ResizeProcess(t.Context(), alice, "box", id, 80, 24), fault.State)
	})
	t.Run("KeepsTheLastOfItsOutput", func(t *testing.T) {
		h, id := start(t, "seq 1 3000000; printf '\\033[31mred'; read x")
		var all, last screen
		if _, err := all.follow(h, id, "red", engine.FollowRequest{Cursor: 0}); !errors.Is(err, errSeen) {
			t.Fatal(err)
		}
		if _, err := last.follow(h, id, "red", engine.FollowRequest{Recent: 64 << 10}); !errors.Is(err, errSeen) {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(last.text, "\r\n")
		if n, err := strconv.Atoi(first); err != nil || len(first) != 7 || n < 2_900_000 || len(last.text) > 64<<10 || len(last.text) < 32<<10 {
			t.Errorf("%d bytes that begin with %q", len(last.text), first)
		}
		if !strings.HasSuffix(last.text, "3000000\r\n\x1b[31mred") || last.gaps != 0 {
			t.Errorf("%q, %d gaps", last.text[max(0, len(last.text)-40):], last.gaps)
		}
		var again screen
		if _, err := again.follow(h, id, "red", engine.FollowRequest{}); !errors.Is(err, errSeen) || again.gaps != 1 || again.seqs[0] == 1 {
			t.Errorf("from the first frame on: %v, %d gaps, from %d", err, again.gaps, again.seqs[0])
		}
		_, err := h.engine.Follow(t.Context(), alice, "box", id, engine.FollowRequest{Recent: -1})
		wantCode(t, err, fault.Invalid)
	})
	t.Run("CtrlCIsItsOwn", func(t *testing.T) {
		h, id := start(t, "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.05; done")
		var s screen
		if _, err := s.follow(h, id, "ready", engine.FollowRequest{}); !errors.Is(err, errSeen) {
			t.Fatal(err)
		}
		write(t, h, id, "\x03")
		if end, err := s.follow(h, id, "", engine.FollowRequest{}); err != nil || end.Result.ExitCode != 3 {
			t.Errorf("%q %+v %v", s.text, end, err)
		}
	})
}

func wantUnavailable(t *testing.T, err error) {
	t.Helper()
	wantCode(t, err, fault.Unavailable)
}

// awaitExit waits until a command has ended, without an engine.
func awaitExit(t *testing.T, h *house, id sandbox.ID, processID string) {
	t.Helper()
	inst, err := h.host.Driver().Open(t.Context(), runtime.Handle{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := agent.NewClient(inst.Dial).Attach(ctx, processID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	for {
		if _, err := p.Next(ctx); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
