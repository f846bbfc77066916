// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/sandbox"
)

func testInit(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	t.Run("ThousandsOfOrphansHarmNoStatus", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "i=0; while [ $i -lt 5000 ] && [ ! -e enough ]; do (true &); i=$((i+1)); done; exit 42"})
		ctx := within(t)
		slow := time.AfterFunc(patience/4, func() { // of a machine that is, hundreds are enough
			_, _, _ = c.WriteFile(ctx, "enough", strings.NewReader(""), sandbox.WriteFileOptions{})
		})
		defer slow.Stop()
		for i := range 100 {
			if out := run(t, c, agent.Command{Shell: "exit 17"}); out.ExitCode != 17 {
				t.Fatalf("command %d: %+v", i, out.Result)
			}
		}
		if out := collect(t, p); out.ExitCode != 42 {
			t.Errorf("%+v %s", out.Result, out.stderr)
		}
		awaitIdle(t, c)
		if o.IsPID1 {
			noZombies(t, c)
		}
	})
	t.Run("WhatEndsWithItsOrphansKeepsItsStatus", func(t *testing.T) { testSameEnd(t, open(t), o) })
	if o.IsPID1 {
		t.Run("WhatACommandMakesItsSiblingIsReapedAndNoCommand", func(t *testing.T) { testSiblings(t, open(t)) })
		t.Run("OrphansAreReapedWhileNoCommandEnds", func(t *testing.T) {
			c := open(t)
			p := start(t, c, agent.Command{Shell: `for i in 1 2 3 4 5 6 7 8; do (sleep 0.0$i &); done; sleep 0.1
				n=100; while [ $n -gt 0 ] && grep -q '^State:.Z' /proc/[0-9]*/status 2>/dev/null; do sleep 0.05; n=$((n-1)); done
				[ $n -gt 0 ] && echo none || echo some; sleep 600`})
			if got := await(t, p, func(s string) bool { return strings.HasSuffix(s, "\n") }); got != "none\n" {
				t.Errorf("zombies while it ran: %s", got)
			}
			if err := c.Kill(within(t), p.ID(), ""); err != nil {
				t.Fatal(err)
			}
		})
	}
	if o.IsPID1 && o.HasRoot {
		t.Run("FewThreadsAreLeftWhenItRests", func(t *testing.T) {
			c := open(t)
			var all []*agent.Process
			for i := range 12 {
				cmd := agent.Command{Shell: "head -c 2000000 /dev/zero; dd if=/dev/zero of=f$$ bs=1M count=2 2>/dev/null"}
				if i%4 == 0 {
					cmd.User = "root"
				}
				all = append(all, start(t, c, cmd))
				if _, _, err := c.List(within(t), ".", sandbox.ListFilesOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range all {
				if out := collect(t, p); out.ExitCode != 0 {
					t.Errorf("%+v %s", out.Result, out.stderr)
				}
			}
			most := max(6, o.Threads)
			if o.Reaps {
				most++
			}
			// How many there are meanwhile is the machine's affair.
			p := start(t, c, agent.Command{Shell: fmt.Sprintf(`n=300; while [ $n -gt 0 ] && [ $(ls /proc/1/task | wc -l) -gt %d ]; do sleep 0.1; n=$((n-1)); done; ls /proc/1/task | wc -l`, most)})
			out := collect(t, p)
			if n, err := strconv.Atoi(strings.TrimSpace(out.stdout)); err != nil || n > most {
				t.Errorf("threads of process 1: %s %s", out.stdout, out.stderr)
			}
			sh(t, c, "true") // and those that are left do
		})
		// Where a thread of its blocks signals for a moment, as the one that starts a command does, the
		// kernel looks at what the signal does by default.
		t.Run("SignalsWhileCommandsStartDoNotEndIt", func(t *testing.T) {
			c := open(t)
			p := start(t, c, agent.Command{Shell: "trap '' 0; for s in 1 15 23 27 34 64; do while kill -$s 1; do :; done & done; wait", User: "root"})
			for range 300 {
				sh(t, c, "true")
			}
			if err := c.Kill(within(t), p.ID(), sandbox.CauseKilled); err != nil {
				t.Error(err)
			}
			collect(t, p)
		})
		t.Run("SignalsOfTheSandboxsRootDoNotEndIt", func(t *testing.T) {
			c := open(t)
			run(t, c, agent.Command{Shell: "for s in $(seq 1 64); do kill -$s 1; done", User: "root"})
			if info, err := c.Ping(within(t)); err != nil || info.PID != 1 {
				t.Errorf("%+v %v", info, err)
			}
			if got := sh(t, c, "trap -p; echo alive"); got != "alive\n" {
				t.Errorf("%q", got)
			}
		})
	}
	if o.IsPID1 { // elsewhere ignored signals and descriptors may come from who started the program
		t.Run("SignalsHaveTheirDefaultsInside", func(t *testing.T) {
			out := sh(t, open(t), "grep -E '^Sig(Blk|Ign)' /proc/self/status")
			if want := "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"; out != want {
				t.Errorf("got %q", out)
			}
		})
		t.Run("NothingOfOursIsOpenInside", func(t *testing.T) {
			out := run(t, open(t), agent.Command{Argv: []string{"ls", "/proc/self/fd"}})
			if got := strings.Fields(out.stdout); len(got) != 4 { // 0 1 2, and that of ls itself
				t.Errorf("open: %v", got)
			}
		})
	}
}
