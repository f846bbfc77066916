// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// What others complain of most is an idle timer that ended real work. These are in real
// time, which stands still in a bubble while a process runs; a slow machine cannot make
// them fail.
func TestIdlenessNeverEndsRealWork(t *testing.T) {
	const long = 2500 * time.Millisecond // and the timeout is a second
	alive := func(t *testing.T, h *house, s *sandbox.Sandbox) {
		t.Helper()
		if got := h.get(s.ID); got == nil || got.State != sandbox.Running {
			t.Errorf("it was stopped at its work: %+v", got)
		}
		if evs := h.events(s.ID); evs[len(evs)-1].Type == sandbox.EventStopped {
			t.Errorf("event: %+v", evs[len(evs)-1])
		}
	}
	for name, work := range map[string]func(t *testing.T, h *house, s *sandbox.Sandbox){
		"OfAProcessThatNobodyWaitsFor": func(t *testing.T, h *house, s *sandbox.Sandbox) {
			if _, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "sleep 60"}); err != nil {
				t.Fatal(err)
			}
			<-time.After(long)
			alive(t, h, s)
		},
		"OfOneThatAnEarlierServerStarted": func(t *testing.T, h *house, s *sandbox.Sandbox) {
			if _, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "sleep 60"}); err != nil {
				t.Fatal(err)
			}
			h.restart()
			<-time.After(long)
			alive(t, h, s)
		},
		"OfOneThatWasPausedInBetween": func(t *testing.T, h *house, s *sandbox.Sandbox) {
			if _, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "sleep 60"}); err != nil {
				t.Fatal(err)
			}
			h.pause("box")
			h.restart()
			h.resume("box")
			<-time.After(long)
			alive(t, h, s)
		},
		"AtATerminal": func(t *testing.T, h *house, s *sandbox.Sandbox) {
			term, err := h.engine.Terminal(t.Context(), alice, "box", engine.TerminalRequest{Shell: "sleep 60"})
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(long)
			alive(t, h, s)
			if err := term.Close(); err != nil {
				t.Error(err)
			}
		},
		"OfACell": func(t *testing.T, h *house, s *sandbox.Sandbox) {
			needs(t, "python3")
			h.cell("box", code.Request{Code: "import time; time.sleep(2.5)"})
			alive(t, h, s)
		},
		"OfAShell": func(t *testing.T, h *house, s *sandbox.Sandbox) {
			if _, err := h.code.ShellExec(t.Context(), alice, "box", "sh", engine.ExecRequest{Shell: "sleep 2.5"}, nil); err != nil {
				t.Fatal(err)
			}
			alive(t, h, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, t.TempDir())
			work(t, h, h.create(engine.CreateRequest{Key: "box", IdleTimeout: ptr(sandbox.MinClock)}))
		})
	}
}
