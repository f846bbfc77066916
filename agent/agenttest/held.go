// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"io"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func testHeld(t *testing.T, open func(*testing.T) *agent.Client) {
	hold := func(t *testing.T, c *agent.Client, cmd agent.Command) *agent.Held {
		t.Helper()
		h, err := c.Hold(within(t), cmd)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	t.Run("RunsWhenItIsTold", func(t *testing.T) {
		c := open(t)
		id := sandbox.NewProcessID()
		h := hold(t, c, agent.Command{ID: id, Shell: "cat; touch ran", Stdin: []byte("in")})
		// The agent answers others meanwhile, and knows no such process.
		sh(t, c, "test ! -e ran")
		_, err := c.Process(within(t), id)
		wantCode(t, err, fault.NotFound)
		p, err := h.Start()
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if out := collect(t, p); out.stdout != "in" || out.ExitCode != 0 {
			t.Errorf("%+v, %q", out.Result, out.stdout)
		}
		sh(t, c, "test -e ran")
	})
	t.Run("StreamsItsInputAfterwards", func(t *testing.T) {
		h := hold(t, open(t), agent.Command{ID: sandbox.NewProcessID(), Argv: []string{"cat"}, StreamStdin: true})
		p, err := h.Start()
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if _, err := io.WriteString(p, "text"); err != nil {
			t.Fatal(err)
		}
		if err := p.CloseStdin(); err != nil {
			t.Fatal(err)
		}
		if out := collect(t, p); out.stdout != "text" {
			t.Errorf("got %q", out.stdout)
		}
	})
	t.Run("NeverRunsOnceDropped", func(t *testing.T) {
		c := open(t)
		id := sandbox.NewProcessID()
		hold(t, c, agent.Command{ID: id, Shell: "touch ran"}).Drop()
		// The id is free, and whatever the first would have done is not there.
		if out := run(t, c, agent.Command{ID: id, Shell: "test ! -e ran"}); out.ExitCode != 0 {
			t.Errorf("%+v", out.Result)
		}
		recs, err := c.Processes(within(t))
		if err != nil || len(recs) != 1 {
			t.Errorf("on record: %+v, %v", recs, err)
		}
	})
	t.Run("ARefusalIsHeardAtTheStart", func(t *testing.T) {
		c := open(t)
		for _, cmd := range []agent.Command{
			{Shell: "true", Cwd: "/no/such/dir"},
			{Argv: []string{""}},
		} {
			cmd.ID = sandbox.NewProcessID()
			_, err := hold(t, c, cmd).Start()
			wantCode(t, err, fault.Invalid)
		}
	})
}
