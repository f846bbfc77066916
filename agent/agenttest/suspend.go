// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func testSuspend(t *testing.T, open func(*testing.T) *agent.Client) {
	suspend := func(t *testing.T, c *agent.Client, turn int64) {
		t.Helper()
		if err := c.Suspend(within(t), turn); err != nil {
			t.Fatal(err)
		}
	}
	proceed := func(t *testing.T, c *agent.Client, turn int64) {
		t.Helper()
		if err := c.Continue(within(t), turn); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("TimeLimitsStandStill", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "sleep 2.5; echo over", Timeout: 2 * time.Second})
		suspend(t, c, 1)
		if out := collect(t, p); out.ExitCode != 0 || out.stdout != "over\n" {
			t.Errorf("%+v, %q", out.Result, out.stdout)
		}
	})
	t.Run("WhatIsLeftOfThemGoesOn", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "sleep 600", Timeout: 500 * time.Millisecond})
		for turn := int64(1); turn < 7; turn += 2 { // and twice is once
			suspend(t, c, turn)
			suspend(t, c, turn)
			proceed(t, c, turn+1)
			proceed(t, c, turn+1)
		}
		if out := collect(t, p); out.Cause != sandbox.CauseTimeout || out.Duration < 500*time.Millisecond {
			t.Errorf("%+v", out.Result)
		}
	})
	t.Run("NothingIsStartedMeanwhile", func(t *testing.T) {
		c := open(t)
		suspend(t, c, 1)
		id := sandbox.NewProcessID()
		got := make(chan *agent.Process, 1)
		go func() {
			p, err := c.Start(within(t), agent.Command{ID: id, Shell: "echo ran", Timeout: time.Minute})
			if err != nil {
				t.Error(err)
			}
			got <- p
		}()
		for range 20 { // the agent answers others
			if _, err := c.Ping(within(t)); err != nil {
				t.Fatal(err)
			}
			_, err := c.Process(within(t), id)
			wantCode(t, err, fault.NotFound)
		}
		proceed(t, c, 2)
		p := <-got
		if p == nil {
			return
		}
		defer p.Close()
		if out := collect(t, p); out.stdout != "ran\n" {
			t.Errorf("%+v, %q", out.Result, out.stdout)
		}
	})
	t.Run("WhatComesLateHasNoEffect", func(t *testing.T) {
		c := open(t)
		proceed(t, c, 5) // of one whose Suspend was never answered
		wantCode(t, c.Suspend(within(t), 4), fault.State)
		run(t, c, agent.Command{Shell: "true"})
		suspend(t, c, 6)
		wantCode(t, c.Continue(within(t), 5), fault.State)
		ctx, cancel := context.WithTimeout(within(t), 50*time.Millisecond)
		defer cancel()
		_, err := c.Start(ctx, agent.Command{ID: sandbox.NewProcessID(), Shell: "true"})
		wantCode(t, err, fault.Timeout)
		proceed(t, c, 7)
		run(t, c, agent.Command{Shell: "true"})
	})
	t.Run("KillsAndEndsAreTold", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "sleep 600", Timeout: time.Minute})
		suspend(t, c, 1)
		if err := c.Kill(within(t), p.ID(), sandbox.CauseKilled); err != nil {
			t.Fatal(err)
		}
		if out := collect(t, p); out.Cause != sandbox.CauseKilled {
			t.Errorf("%+v", out.Result)
		}
		proceed(t, c, 2)
		run(t, c, agent.Command{Shell: "true"})
	})
}
