// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
)

func testTerminal(t *testing.T, open func(*testing.T) *agent.Client) {
	size := &agent.Terminal{Cols: 100, Rows: 30}
	t.Run("IsOneForAllStreams", func(t *testing.T) {
		out := run(t, open(t), agent.Command{Shell: "test -t 0 && test -t 1 && test -t 2 && stty size && echo $TERM && echo err >&2", Terminal: size})
		if out.stdout != "30 100\r\nxterm-256color\r\nerr\r\n" || out.stderr != "" || out.ExitCode != 0 {
			t.Errorf("%q %q %+v", out.stdout, out.stderr, out.Result)
		}
	})
	t.Run("TakesInputAndControlCharacters", func(t *testing.T) {
		p := start(t, open(t), agent.Command{Shell: "trap 'echo interrupted; exit 3' INT; echo ready; while :; do sleep 0.05; done", Terminal: size})
		await(t, p, func(s string) bool { return strings.Contains(s, "ready") })
		if _, err := p.Write([]byte{3}); err != nil {
			t.Fatal(err)
		}
		if out := collect(t, p); out.ExitCode != 3 || !strings.Contains(out.stdout, "interrupted") {
			t.Errorf("%q %+v", out.stdout, out.Result)
		}
	})
	t.Run("Resizes", func(t *testing.T) {
		p := start(t, open(t), agent.Command{Shell: "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done", Terminal: size})
		await(t, p, func(s string) bool { return strings.Contains(s, "ready") })
		wantCode(t, p.Resize(0, 0), fault.Invalid)
		if err := p.Resize(80, 24); err != nil {
			t.Fatal(err)
		}
		if out := collect(t, p); !strings.Contains(out.stdout, "24 80") {
			t.Errorf("%q", out.stdout)
		}
		wantCode(t, p.Resize(80, 24), fault.State)
	})
	t.Run("ClosingHangsUp", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "echo ready; sleep 1000", Terminal: size})
		await(t, p, func(s string) bool { return strings.Contains(s, "ready") })
		_ = p.Close()
		awaitIdle(t, c)
		rec, err := c.Process(within(t), p.ID())
		if err != nil || rec.Result == nil || rec.Result.Signal != "SIGHUP" {
			t.Errorf("%+v %v", rec.Result, err)
		}
	})
	t.Run("ClosingLeavesOneThatStays", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "echo ready; read x; echo got $x", Terminal: &agent.Terminal{Cols: 80, Rows: 24, Stays: true}})
		await(t, p, func(s string) bool { return strings.Contains(s, "ready") })
		_ = p.Close()
		q, err := c.Attach(within(t), p.ID(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		if _, err := q.Write([]byte("it\n")); err != nil {
			t.Fatal(err)
		}
		if out := collect(t, q); !strings.Contains(out.stdout, "got it") {
			t.Errorf("%q %+v", out.stdout, out.Result)
		}
	})
}
