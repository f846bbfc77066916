// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func testWait(t *testing.T, open func(*testing.T) *agent.Client) {
	t.Run("ComesWithTheEnd", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "echo x; read y; exit 4", StreamStdin: true})
		got := make(chan sandbox.Result, 1)
		go func() {
			res, err := c.Wait(within(t), p.ID())
			if err != nil {
				t.Error(err)
			}
			got <- res
		}()
		await(t, p, func(s string) bool { return s == "x\n" })
		if err := p.CloseStdin(); err != nil {
			t.Fatal(err)
		}
		if res := <-got; res.ExitCode != 4 || res.StdoutBytes != 2 {
			t.Errorf("got %+v", res)
		}
	})
	t.Run("OfOneThatHasEnded", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "exit 5"})
		collect(t, p)
		if res, err := c.Wait(within(t), p.ID()); err != nil || res.ExitCode != 5 {
			t.Errorf("got %+v, %v", res, err)
		}
	})
	t.Run("EndsWithItsContext", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "sleep 600"})
		ctx, cancel := context.WithTimeout(within(t), 20*time.Millisecond)
		defer cancel()
		_, err := c.Wait(ctx, p.ID())
		wantCode(t, err, fault.Timeout)
		_, err = c.Wait(within(t), sandbox.NewProcessID())
		wantCode(t, err, fault.NotFound)
	})
}

func testInput(t *testing.T, open func(*testing.T) *agent.Client) {
	put := func(t *testing.T, c *agent.Client, id, text string, offset int64, end bool) sandbox.InputTaken {
		t.Helper()
		taken, err := c.Input(within(t), id, agent.Input{Data: []byte(text), Offset: offset, End: end})
		if err != nil {
			t.Fatal(err)
		}
		return taken
	}
	t.Run("OutlivesTheConnectionThatStarted", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "cat; echo over", StreamStdin: true})
		_ = p.Close()
		if got := put(t, c, p.ID(), "one ", -1, false); got != (sandbox.InputTaken{Bytes: 4, Total: 4}) {
			t.Errorf("got %+v", got)
		}
		if got := put(t, c, p.ID(), "two ", 4, true); got != (sandbox.InputTaken{Bytes: 4, Total: 8, Closed: true}) {
			t.Errorf("got %+v", got)
		}
		q, err := c.Attach(within(t), p.ID(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		if out := collect(t, q); out.stdout != "one two over\n" {
			t.Errorf("got %q", out.stdout)
		}
	})
	t.Run("APieceThatIsSentAgainIsTakenOnce", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Argv: []string{"cat"}, StreamStdin: true})
		put(t, c, p.ID(), "abc", 0, false)
		if got := put(t, c, p.ID(), "abc", 0, false); got.Bytes != 3 || got.Total != 3 {
			t.Errorf("the same again: got %+v", got)
		}
		if got := put(t, c, p.ID(), "cde", 2, true); got.Bytes != 3 || got.Total != 5 {
			t.Errorf("half of it again: got %+v", got)
		}
		_, err := c.Input(within(t), p.ID(), agent.Input{Data: []byte("x"), Offset: 9})
		if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.State) { // it may have ended
			t.Errorf("from the future: %v", err)
		}
		if out := collect(t, p); out.stdout != "abcde" {
			t.Errorf("got %q", out.stdout)
		}
	})
	t.Run("FromTheFutureIsInvalid", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "sleep 600", StreamStdin: true})
		_, err := c.Input(within(t), p.ID(), agent.Input{Data: []byte("x"), Offset: 9})
		wantCode(t, err, fault.Invalid)
	})
	t.Run("AProgramThatDoesNotReadTakesWhatFits", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "sleep 600", StreamStdin: true})
		piece := bytes.Repeat([]byte("x"), agent.MaxInput)
		var sent int64
		for {
			taken, err := c.Input(within(t), p.ID(), agent.Input{Data: piece, Offset: sent, Patience: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if sent += int64(taken.Bytes); sent != taken.Total {
				t.Fatalf("%d bytes were taken here, %d in all", sent, taken.Total)
			}
			if taken.Bytes < len(piece) {
				break
			}
			if sent > 16<<20 {
				t.Fatal("nobody reads, and all is taken")
			}
		}
	})
	t.Run("BehindAnotherWriterNothingIsTaken", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "sleep 600", StreamStdin: true})
		piece := bytes.Repeat([]byte("x"), agent.MaxInput)
		var full sandbox.InputTaken
		for more := true; more; more = full.Bytes > 0 {
			var err error
			if full, err = c.Input(within(t), p.ID(), agent.Input{Data: piece, Offset: -1, Patience: 50 * time.Millisecond}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		other := make(chan struct{})
		go func() { // it has the turn until it is cancelled
			defer close(other)
			_, _ = c.Input(ctx, p.ID(), agent.Input{Data: piece, Offset: -1})
		}()
		for range 5 {
			taken, err := c.Input(within(t), p.ID(), agent.Input{Data: []byte("y"), Offset: -1, Patience: 50 * time.Millisecond})
			if err != nil || taken != (sandbox.InputTaken{Total: full.Total}) {
				t.Errorf("got %+v, %v; want nothing taken of %d", taken, err, full.Total)
			}
		}
		cancel()
		<-other
	})
	t.Run("WithoutAStreamOrAReaderIsState", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "sleep 600"})
		_, err := c.Input(within(t), p.ID(), agent.Input{Data: []byte("x"), Offset: -1})
		wantCode(t, err, fault.State)
		q := start(t, c, agent.Command{Shell: "exec <&-; echo closed; sleep 600", StreamStdin: true})
		await(t, q, func(s string) bool { return s == "closed\n" })
		_, err = c.Input(within(t), q.ID(), agent.Input{Data: []byte("x"), Offset: -1})
		wantCode(t, err, fault.State)
		r := start(t, c, agent.Command{Shell: "exit", StreamStdin: true})
		collect(t, r)
		_, err = c.Input(within(t), r.ID(), agent.Input{Data: []byte("x"), Offset: -1})
		wantCode(t, err, fault.State)
		_, err = c.Input(within(t), sandbox.NewProcessID(), agent.Input{Data: []byte("x"), Offset: -1})
		wantCode(t, err, fault.NotFound)
	})
	t.Run("ReachesATerminal", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "read x; echo got $x", Terminal: &agent.Terminal{Cols: 80, Rows: 24, Stays: true}})
		put(t, c, p.ID(), "it\n", -1, false)
		if out := collect(t, p); !strings.Contains(out.stdout, "got it") {
			t.Errorf("got %q", out.stdout)
		}
		wantCode(t, c.Resize(within(t), p.ID(), 80, 24), fault.State)
	})
	t.Run("LostOutputIsCounted", func(t *testing.T) {
		out := run(t, open(t), agent.Command{Shell: "printf 0123456789; printf ab >&2", MaxStdout: 4})
		if out.StdoutLost != 6 || out.StderrLost != 0 || out.stdout != "0123" {
			t.Errorf("got %q, %+v", out.stdout, out.Result)
		}
	})
}
