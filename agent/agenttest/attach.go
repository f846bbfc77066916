// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func testAttach(t *testing.T, open func(*testing.T) *agent.Client) {
	t.Run("FollowersGetHistoryThenLifeThenTheEnd", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "i=0; while read x; do echo line $i; echo err $i >&2; i=$((i+1)); done; exit 5", StreamStdin: true})
		results := make(chan output, 20)
		const lines = 200
		for i := range lines {
			if _, err := p.Write([]byte("x\n")); err != nil {
				t.Fatal(err)
			}
			if i%10 == 0 {
				q, err := c.Attach(within(t), p.ID(), 0)
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					defer q.Close()
					results <- collect(t, q)
				}()
			}
		}
		if err := p.CloseStdin(); err != nil {
			t.Fatal(err)
		}
		want := collect(t, p)
		if strings.Count(want.stdout, "\n") != lines || want.ExitCode != 5 {
			t.Fatalf("%d lines, %+v", strings.Count(want.stdout, "\n"), want.Result)
		}
		for range lines / 10 {
			got := <-results
			if got.stdout != want.stdout || got.stderr != want.stderr || got.ExitCode != 5 {
				t.Errorf("a follower got %d and %d bytes, want %d and %d", len(got.stdout), len(got.stderr), len(want.stdout), len(want.stderr))
			}
			for i, f := range got.frames {
				if f.Seq != int64(i+1) {
					t.Fatalf("frame %d has the number %d", i, f.Seq)
				}
			}
		}
	})
	t.Run("CursorResumesExactly", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.01; done"})
		all := collect(t, p)
		for _, f := range all.frames {
			q, err := c.Attach(within(t), p.ID(), f.Seq)
			if err != nil {
				t.Fatal(err)
			}
			rest := collect(t, q)
			_ = q.Close()
			if len(rest.frames) != len(all.frames)-int(f.Seq) || !strings.HasSuffix(all.stdout, rest.stdout) {
				t.Errorf("after %d: %d frames, %q", f.Seq, len(rest.frames), rest.stdout)
			}
		}
	})
	t.Run("CursorFromTheFutureIsInvalid", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "echo one"})
		collect(t, p)
		for _, after := range []int64{2, -1, 1 << 60} {
			_, err := nextOf(t, c, p.ID(), after)
			wantCode(t, err, fault.Invalid)
		}
	})
	t.Run("UnknownProcessIsNotFound", func(t *testing.T) {
		c := open(t)
		for _, id := range []string{sandbox.NewProcessID(), "", "../../etc/passwd"} {
			_, err := c.Attach(within(t), id, 0)
			wantCode(t, err, fault.NotFound)
		}
	})
	t.Run("ClosingLeavesTheProcessRunning", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkfifo gate")
		p := start(t, c, agent.Command{Shell: "echo a; read x < gate; echo b"})
		await(t, p, func(s string) bool { return strings.Contains(s, "a") })
		_ = p.Close()
		q, err := c.Attach(within(t), p.ID(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		sh(t, c, "echo go > gate")
		if out := collect(t, q); out.stdout != "a\nb\n" || out.ExitCode != 0 {
			t.Errorf("%q", out.stdout)
		}
	})
	t.Run("NextThatGivesUpLosesNothing", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Argv: []string{"cat"}, StreamStdin: true})
		for range 20 {
			ctx, cancel := contextWithin(t, time.Millisecond)
			if _, err := p.Next(ctx); fault.Of(err) != fault.Timeout {
				t.Fatalf("Next: %v", err)
			}
			cancel()
		}
		if _, err := p.Write([]byte("still here\n")); err != nil {
			t.Fatal(err)
		}
		await(t, p, func(s string) bool { return s == "still here\n" })
		_ = p.CloseStdin()
		collect(t, p)
	})
}

func contextWithin(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

// nextOf attaches and asks for the first frame.
func nextOf(t *testing.T, c *agent.Client, id string, after int64) (sandbox.Frame, error) {
	t.Helper()
	p, err := c.Attach(within(t), id, after)
	if err != nil {
		return sandbox.Frame{}, err
	}
	defer p.Close()
	return p.Next(within(t))
}
