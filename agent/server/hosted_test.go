// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// A shell here is cat, which says what it was told.
func TestACommandInAShell(t *testing.T) {
	t.Parallel()
	p := newPlain(t, nil)
	c := p.client
	shell, err := c.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "cat", StreamStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	defer shell.Close()
	held := func(t *testing.T, shell string) (*agent.Held, string) {
		t.Helper()
		id := sandbox.NewProcessID()
		h, err := c.HoldIn(t.Context(), shell, agent.Command{ID: id, Shell: "true"})
		if err != nil {
			t.Fatal(err)
		}
		return h, id
	}
	t.Run("IsToldWithItsStreamsAndEndsByItsWord", func(t *testing.T) {
		h, id := held(t, shell.ID())
		run, err := h.Run([]byte("into \x001 and \x002\n"))
		if err != nil {
			t.Fatal(err)
		}
		defer run.Close()
		fr, err := shell.Next(t.Context())
		if want := "into " + run.Streams() + "1 and " + run.Streams() + "2\n"; err != nil || string(fr.Data) != want {
			t.Fatalf("%q, %v, want %q", fr.Data, err, want)
		}
		writer, err := c.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "echo out >" + run.Streams() + "1"})
		if err != nil {
			t.Fatal(err)
		}
		_ = follow(writer)
		if err := run.Conclude(sandbox.Result{ExitCode: 3, Signal: "SIGTERM"}); err != nil {
			t.Fatal(err)
		}
		if err := run.Conclude(sandbox.Result{ExitCode: 4}); err != nil && !fault.Is(err, fault.Unavailable) { // the first stands
			t.Error(err)
		}
		got := follow(run)
		if got.out != "out\n" || got.err != nil || got.res.ExitCode != 3 || got.res.Signal != "SIGTERM" || got.res.StdoutBytes != 4 {
			t.Errorf("%+v", got)
		}
		if rec, err := c.Conclude(t.Context(), id, sandbox.Result{ExitCode: 5}); err != nil || rec.Result == nil || rec.Result.ExitCode != 3 {
			t.Errorf("%+v, %v", rec, err)
		}
	})
	t.Run("GoesOnWithoutWhoBeganIt", func(t *testing.T) {
		h, id := held(t, shell.ID())
		run, err := h.Run([]byte("told\n"))
		if err != nil {
			t.Fatal(err)
		}
		_ = run.Close()
		if fr, err := shell.Next(t.Context()); err != nil || string(fr.Data) != "told\n" {
			t.Fatalf("%q, %v", fr.Data, err)
		}
		if rec, err := c.Process(t.Context(), id); err != nil || rec.Result != nil {
			t.Errorf("%+v, %v", rec, err)
		}
		if rec, err := c.Conclude(t.Context(), id, sandbox.Result{}); err != nil || rec.Result == nil {
			t.Errorf("%+v, %v", rec, err)
		}
	})
	t.Run("IsNotBegunBeforeTheWord", func(t *testing.T) {
		h, id := held(t, shell.ID())
		h.Drop()
		awaitCalls(t, c)
		if rec, err := c.Process(t.Context(), id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%+v, %v", rec, err)
		}
	})
	t.Run("NeedsAShellThatRuns", func(t *testing.T) {
		h, id := held(t, shell.ID())
		run, err := h.Run(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer run.Close()
		gone, err := c.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "true", StreamStdin: true})
		if err != nil {
			t.Fatal(err)
		}
		_ = follow(gone)
		deaf, err := c.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "sleep 1000"})
		if err != nil {
			t.Fatal(err)
		}
		defer deaf.Close()
		for of, code := range map[string]fault.Code{
			id: fault.State, gone.ID(): fault.State, deaf.ID(): fault.State, sandbox.NewProcessID(): fault.NotFound, "../x": fault.NotFound,
		} {
			h, its := held(t, of)
			if run, err := h.Run([]byte("x\n")); !fault.Is(err, code) {
				t.Errorf("in %s: %v, %v, want %s", of, run, err, code)
			}
			if rec, err := c.Process(t.Context(), its); !fault.Is(err, fault.NotFound) {
				t.Errorf("in %s: %+v, %v", of, rec, err)
			}
		}
		if h, _ = held(t, shell.ID()); h == nil {
			t.Fatal("the shell is of no use any more")
		}
		again, err := h.Run([]byte("next\n"))
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if fr, err := shell.Next(t.Context()); err != nil || string(fr.Data) != "next\n" {
			t.Errorf("%q, %v", fr.Data, err)
		}
	})
	t.Run("IsRefusedWhereItsRequestMakesNoSense", func(t *testing.T) {
		end := wire.Append(nil, wire.End, nil)
		large := wire.Append(nil, wire.Data, bytes.Repeat([]byte("x"), wire.MaxData))
		for name, one := range map[string]struct {
			start *wire.Start
			sent  []byte
			code  fault.Code
		}{
			"WithATerminal":      {&wire.Start{Shell: "true", Terminal: &wire.Terminal{Cols: 80, Rows: 24}}, end, fault.Invalid},
			"WithInputAtOnce":    {&wire.Start{Shell: "true", StdinSize: 1}, end, fault.Invalid},
			"WithALimit":         {&wire.Start{Shell: "true", TimeoutMS: 5}, end, fault.Invalid},
			"WithTooLongAText":   {&wire.Start{Shell: "true"}, append(bytes.Clone(large), append(wire.Append(nil, wire.Data, []byte("x")), end...)...), fault.Malformed},
			"EndedBeforeItBegan": {&wire.Start{Shell: "true"}, wire.Append(nil, wire.Told, []byte("{}")), fault.Malformed},
			"WithoutAStart":      {nil, end, fault.Invalid},
		} {
			id := sandbox.NewProcessID()
			b, err := wire.AppendJSON(wire.AppendHello(nil), wire.Call, wire.Request{Op: wire.OpRunIn, ID: id, In: shell.ID(), Start: one.start})
			if err != nil {
				t.Fatal(err)
			}
			types, last := p.talk(t, append(b, one.sent...))
			var e wire.Error
			if len(types) != 1 || types[0] != wire.Failure || wire.Decode(last, &e) != nil || e.Code != string(one.code) {
				t.Errorf("%s: %v %s", name, types, last)
			}
			if rec, err := c.Process(t.Context(), id); !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: %+v, %v", name, rec, err)
			}
		}
	})
	t.Run("WhoseEndMakesNoSenseGoesOn", func(t *testing.T) {
		id := sandbox.NewProcessID()
		b, err := wire.AppendJSON(wire.AppendHello(nil), wire.Call, wire.Request{Op: wire.OpRunIn, ID: id, In: shell.ID(), Start: &wire.Start{Shell: "true", Cwd: "/"}})
		if err != nil {
			t.Fatal(err)
		}
		b = wire.Append(wire.Append(b, wire.End, nil), wire.Told, []byte(`{"exit_code":`))
		if types, last := p.talk(t, b); len(types) != 1 || types[0] != wire.Reply {
			t.Errorf("%v %s", types, last)
		}
		long := strings.Repeat("x", 10_000)
		rec, err := c.Conclude(t.Context(), id, sandbox.Result{ExitCode: 1, Signal: long, CauseDetail: long})
		if err != nil || rec.Result == nil || rec.Result.ExitCode != 1 || len(rec.Result.Signal) > 20 || len(rec.Result.CauseDetail) > 600 {
			t.Errorf("%+v, %v", rec, err)
		}
	})
	t.Run("WhoseShellReadsNothingEndsWithIt", func(t *testing.T) {
		closed, err := c.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "exec <&-; echo closed; sleep 1000", StreamStdin: true})
		if err != nil {
			t.Fatal(err)
		}
		defer closed.Close()
		if fr, err := closed.Next(t.Context()); err != nil || string(fr.Data) != "closed\n" {
			t.Fatalf("%q, %v", fr.Data, err)
		}
		h, _ := held(t, closed.ID())
		run, err := h.Run([]byte("x\n"))
		if err != nil {
			t.Fatal(err)
		}
		defer run.Close()
		if got := follow(run); got.err != nil || got.res.ExitCode != 137 || got.res.Cause != sandbox.CauseKilled {
			t.Errorf("%+v", got)
		}
	})
}

// awaitCalls waits until the agent has seen the end of what was hung up before.
func awaitCalls(t *testing.T, c *agent.Client) {
	t.Helper()
	for range 3 { // each is answered behind those that came before
		if _, err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
