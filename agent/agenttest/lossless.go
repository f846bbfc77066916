// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"errors"
	"io"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/sandbox"
)

// testLossless runs a command that writes more than a log keeps.
func testLossless(t *testing.T, open func(*testing.T) *agent.Client) {
	const much = 150_000_000
	writes := agent.Command{Shell: "head -c 150000000 /dev/zero; echo end >&2", Lossless: true, MaxStdout: 1 << 20, MaxStderr: 1 << 20}
	// rest counts the bytes of p behind the frame last, which have to be there to the last.
	rest := func(t *testing.T, p *agent.Process, last int64) (bytes int64) {
		t.Helper()
		ctx := within(t)
		p.Borrowed = true
		for {
			f, err := p.Next(ctx)
			if errors.Is(err, io.EOF) {
				return bytes
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.Seq != last+1 {
				t.Fatalf("frame %d comes after %d", f.Seq, last)
			}
			last = f.Seq
			if f.Stream == sandbox.Stdout {
				bytes += int64(len(f.Data))
			}
		}
	}
	t.Run("ItsFollowerGetsAllAndTheProgramWaitsForIt", func(t *testing.T) {
		c := open(t)
		p := start(t, c, writes)
		for range 200 { // while nobody reads
			rec, err := c.Process(within(t), p.ID())
			if err != nil {
				t.Fatal(err)
			}
			if rec.LastSeq > much/2/(64<<10) { // frames of at most so many bytes
				t.Fatalf("%d frames were written, and none was read", rec.LastSeq)
			}
		}
		if got := rest(t, p, 0); got != much {
			t.Errorf("%d bytes came of %d", got, much)
		}
		if res := p.Result(); res.StdoutBytes != much || !res.StdoutTruncated || res.StdoutCut != sandbox.CutRolled || res.ExitCode != 0 {
			t.Errorf("%+v", res)
		}
		awaitIdle(t, c)
		past, err := c.Attach(within(t), p.ID(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer past.Close()
		kept := collect(t, past)
		if n := len(kept.stdout); n < 8<<20 || n > much/2 || kept.stderr != "end\n" {
			t.Errorf("%d bytes are kept, and %q", n, kept.stderr)
		}
	})
	t.Run("OneThatWasLostGoesOnWhereItWas", func(t *testing.T) {
		c := open(t)
		p := start(t, c, writes)
		var bytes, last int64
		for range 20 {
			for range 20 {
				f, err := p.Next(within(t))
				if err != nil {
					t.Fatal(err)
				}
				if f.Seq != last+1 {
					t.Fatalf("frame %d comes after %d", f.Seq, last)
				}
				bytes, last = bytes+int64(len(f.Data)), f.Seq
			}
			_ = p.Close()
			var err error
			if p, err = c.AttachAs(within(t), p.ID(), agent.Attaching{After: last, Lossless: true}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
		}
		if bytes += rest(t, p, last); bytes != much {
			t.Errorf("%d bytes came of %d", bytes, much)
		}
	})
	t.Run("ItsEndIsToldWhoeverFollowsIt", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "head -c 150000000 /dev/zero & read x", StreamStdin: true, Lossless: true})
		if err := c.Kill(within(t), p.ID(), sandbox.CauseKilled); err != nil { // while it waits for us
			t.Fatal(err)
		}
		rest(t, p, 0)
		if res := p.Result(); res.Cause != sandbox.CauseKilled {
			t.Errorf("%+v", res)
		}
	})
}
