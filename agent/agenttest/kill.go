// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// alive reports whether a process that wrote its number to a file still runs.
func alive(t *testing.T, c *agent.Client, file string) bool {
	t.Helper()
	out := run(t, c, agent.Command{Shell: `p=$(cat ` + file + `) && s=$(cut -d")" -f2 /proc/$p/stat 2>/dev/null | cut -c2) && [ "$s" != Z ] && [ -n "$s" ]`})
	return out.ExitCode == 0
}

func testKill(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	t.Run("TimeoutIsSaidAndTakesTheTree", func(t *testing.T) {
		c := open(t)
		out := run(t, c, agent.Command{
			Shell: "sh -c 'echo $$ > child; exec sleep 1000' & echo started; wait; echo never", Timeout: time.Second,
		})
		if out.Cause != sandbox.CauseTimeout || out.ExitCode != 137 || out.Signal != "SIGKILL" || out.stdout != "started\n" {
			t.Errorf("%+v %q", out.Result, out.stdout)
		}
		if !strings.Contains(out.CauseDetail, " 1s ") {
			t.Errorf("detail: %q", out.CauseDetail)
		}
		if alive(t, c, "child") {
			t.Error("its child lives")
		}
	})
	t.Run("TimeoutReachesWhoIgnoresSignals", func(t *testing.T) {
		out := run(t, open(t), agent.Command{Shell: "trap '' TERM HUP INT; while :; do sleep 1000; done", Timeout: 200 * time.Millisecond})
		if out.Cause != sandbox.CauseTimeout {
			t.Errorf("%+v", out.Result)
		}
	})
	t.Run("ASignalToTheYoungSparesTheOldAndTheFirst", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "sleep 1000 & old=$!; read x; sleep 1000 & new=$!; echo ready; wait $new; echo young $?; kill -0 $old && echo old; kill $old", StreamStdin: true})
		time.Sleep(1500 * time.Millisecond) // the age of the old one
		if _, err := p.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
		await(t, p, func(s string) bool { return strings.Contains(s, "ready") })
		if err := c.SignalYounger(within(t), p.ID(), syscall.SIGKILL, time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
		if out := collect(t, p); out.stdout != "young 137\nold\n" || out.ExitCode != 0 {
			t.Errorf("%q %+v", out.stdout, out.Result)
		}
		wantCode(t, c.SignalYounger(within(t), p.ID(), syscall.SIGKILL, time.Now().Add(-time.Second)), fault.State)
	})
	if o.HasGroups {
		t.Run("TimeoutReachesDaemonsThatForkedTwice", func(t *testing.T) {
			c := open(t)
			out := run(t, c, agent.Command{
				Shell:   "setsid sh -c '(echo $$ > outer; setsid sh -c \"echo \\$\\$ > daemon; exec sleep 1000\" & ) & ' & while [ ! -s daemon ]; do sleep 0.01; done; echo up; sleep 1000",
				Timeout: 3 * time.Second, // a slow machine says "up" by then too
			})
			if out.Cause != sandbox.CauseTimeout || out.stdout != "up\n" {
				t.Errorf("%+v %q", out.Result, out.stdout)
			}
			if alive(t, c, "daemon") {
				t.Error("the daemon lives")
			}
		})
		t.Run("KillReachesWhatACommandLeftBehind", func(t *testing.T) {
			c := open(t)
			p := start(t, c, agent.Command{Shell: "setsid sh -c 'echo $$ > daemon; exec sleep 1000' >/dev/null 2>&1 & while [ ! -s daemon ]; do sleep 0.01; done"})
			collect(t, p)
			if !alive(t, c, "daemon") {
				t.Fatal("the daemon is gone already")
			}
			if err := c.Kill(within(t), p.ID(), sandbox.CauseKilled); err != nil {
				t.Fatal(err)
			}
			if alive(t, c, "daemon") {
				t.Error("the daemon lives")
			}
		})
		t.Run("WaitsForNobodyWhoOpenedItsOutput", func(t *testing.T) {
			for name, hold := range map[string]string{"Idle": "sleep 1000", "Writing": "cat /dev/zero >&3"} {
				t.Run(name, func(t *testing.T) {
					c := open(t)
					p := start(t, c, agent.Command{Shell: "echo $$ > pid; echo last words; exec sleep 1000", MaxStdout: 1 << 10})
					other := start(t, c, agent.Command{Shell: "while [ ! -s pid ]; do sleep 0.01; done; exec 3>/proc/$(cat pid)/fd/1; echo held; exec " + hold})
					await(t, other, func(s string) bool { return s == "held\n" })
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					if err := c.Kill(ctx, p.ID(), sandbox.CauseKilled); err != nil {
						t.Fatal(err)
					}
					if out := collect(t, p); out.Cause != sandbox.CauseKilled || !strings.HasPrefix(out.stdout, "last words\n") {
						t.Errorf("%q %+v", out.stdout, out.Result)
					}
					if err := c.Kill(ctx, other.ID(), sandbox.CauseKilled); err != nil {
						t.Error(err)
					}
				})
			}
		})
		t.Run("KillAllReachesAlsoWhatEndedCommandsLeft", func(t *testing.T) {
			c := open(t)
			left := start(t, c, agent.Command{Shell: "setsid sh -c 'echo $$ > daemon; exec sleep 1000' >/dev/null 2>&1 & while [ ! -s daemon ]; do sleep 0.01; done"})
			collect(t, left)
			deaf := start(t, c, agent.Command{Shell: "trap '' TERM; echo ready; while :; do sleep 1000; done"})
			await(t, deaf, func(s string) bool { return s == "ready\n" })
			if err := c.KillAll(within(t)); err != nil {
				t.Fatal(err)
			}
			if alive(t, c, "daemon") {
				t.Error("the daemon lives")
			}
			if out := collect(t, deaf); out.ExitCode != 137 || out.Cause != sandbox.CauseKilled {
				t.Errorf("deaf: %+v", out.Result)
			}
			if err := c.KillAll(within(t)); err != nil {
				t.Errorf("where nothing runs: %v", err)
			}
			if sh(t, c, "echo again") != "again\n" {
				t.Error("the agent starts nothing after it")
			}
		})
		t.Run("ForkBombIsKilledWhole", func(t *testing.T) {
			c := open(t)
			out := run(t, c, agent.Command{
				Shell:   "f() { [ $1 -gt 5 ] && exec sleep 1000; f $(($1+1)) & f $(($1+1)); }; f 0",
				Timeout: time.Second, MaxStderr: 1 << 10,
			})
			if out.Cause != sandbox.CauseTimeout {
				t.Errorf("%+v", out.Result)
			}
			awaitIdle(t, c)
		})
	}
	t.Run("KillPutsItsCauseOnRecord", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "sleep 1000"})
		if err := c.Kill(within(t), p.ID(), sandbox.CauseKilled); err != nil {
			t.Fatal(err)
		}
		if out := collect(t, p); out.Cause != sandbox.CauseKilled || out.ExitCode != 137 {
			t.Errorf("%+v", out.Result)
		}
		if err := c.Kill(within(t), p.ID(), sandbox.CauseKilled); err != nil {
			t.Errorf("a second time: %v", err)
		}
		wantCode(t, c.Kill(within(t), sandbox.NewProcessID(), sandbox.CauseKilled), fault.NotFound)
	})
	t.Run("SignalReachesTheProcess", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "trap 'echo got; exit 9' USR1; echo ready; while :; do sleep 0.05; done"})
		await(t, p, func(s string) bool { return s == "ready\n" })
		if err := p.Signal(10); err != nil {
			t.Fatal(err)
		}
		if out := collect(t, p); out.ExitCode != 9 || out.stdout != "got\n" {
			t.Errorf("%+v %q", out.Result, out.stdout)
		}
		wantCode(t, p.Signal(10), fault.State)
		wantCode(t, c.Signal(within(t), p.ID(), 0, false), fault.Invalid)
	})
	t.Run("SignalReachesTheTree", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "trap 'wait; exit 9' USR1; sh -c 'trap \"echo child; exit\" USR1; echo ready; while :; do sleep 0.05; done' & wait; wait"})
		await(t, p, func(s string) bool { return s == "ready\n" })
		if err := c.Signal(within(t), p.ID(), 10, true); err != nil {
			t.Fatal(err)
		}
		await(t, p, func(s string) bool { return strings.Contains(s, "child") })
		if err := c.Kill(within(t), p.ID(), ""); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("ShutdownLetsThemEndAndSaysSo", func(t *testing.T) {
		c := open(t)
		kind := start(t, c, agent.Command{Shell: "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done"})
		deaf := start(t, c, agent.Command{Shell: "trap '' TERM; echo ready; while :; do sleep 1000; done"})
		for _, p := range []*agent.Process{kind, deaf} {
			await(t, p, func(s string) bool { return s == "ready\n" })
		}
		if err := c.Shutdown(within(t), 500*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if out := collect(t, kind); out.stdout != "bye\n" || out.ExitCode != 0 || out.Cause != sandbox.CauseStopped {
			t.Errorf("kind: %q %+v", out.stdout, out.Result)
		}
		if out := collect(t, deaf); out.ExitCode != 137 || out.Cause != sandbox.CauseStopped {
			t.Errorf("deaf: %+v", out.Result)
		}
		if sh(t, c, "echo again") != "again\n" {
			t.Error("the agent starts nothing after it")
		}
	})
}

// awaitIdle waits until the agent has no process.
func awaitIdle(t *testing.T, c *agent.Client) {
	t.Helper()
	ctx := within(t)
	for {
		info, err := c.Ping(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if info.Processes == 0 {
			return
		}
	}
}
