// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

func TestTerminal(t *testing.T) {
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
			Shell: "a", Argv: []string{"b"}, Cols: 2000, Rows: 2000, Term: "\x1b", User: "bin"})
		wantCode(t, err, fault.Invalid)
		if n := len(fault.As(err).Fields); n != 5 {
			t.Errorf("%d fields: %v", n, err)
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
