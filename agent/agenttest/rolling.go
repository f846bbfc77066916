// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"strconv"
	"strings"
	"testing"

	"sandpit.dev/agent"
)

// numbers is what `seq 1 600000` writes, about 4 MB.
func numbers() string {
	var b strings.Builder
	for i := 1; i <= 600_000; i++ {
		b.WriteString(strconv.Itoa(i))
		b.WriteByte('\n')
	}
	return b.String()
}

func testRolling(t *testing.T, open func(*testing.T) *agent.Client) {
	const kept = 64 << 10
	all := numbers()
	rolls := agent.Command{Shell: "seq 1 600000; echo ready >&2; read x; echo last", StreamStdin: true, MaxStdout: kept, MaxStderr: kept, Rolling: true}
	// tail checks that got is the end of want, and no less than is promised.
	tail := func(t *testing.T, got output, want string) {
		t.Helper()
		if !strings.HasSuffix(want, got.stdout) || len(got.stdout) < kept || len(got.stdout) > len(want)/2 {
			t.Errorf("%d bytes of %d are kept, ending with %q", len(got.stdout), len(want), got.stdout[max(0, len(got.stdout)-20):])
		}
		for i, f := range got.frames {
			if i > 0 && f.Seq != got.frames[i-1].Seq+1 {
				t.Errorf("frame %d comes after %d", f.Seq, got.frames[i-1].Seq)
			}
		}
		if len(got.frames) == 0 || got.frames[0].Seq == 1 {
			t.Error("nothing was let go of")
		}
	}
	t.Run("KeepsTheLastBytes", func(t *testing.T) {
		c := open(t)
		p := start(t, c, rolls)
		if !p.Record().Rolling {
			t.Errorf("%+v", p.Record())
		}
		seen := make(chan output, 1)
		live, err := c.Attach(within(t), p.ID(), 0)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer live.Close()
			seen <- collect(t, live)
		}()
		await(t, p, func(s string) bool { return strings.Contains(s, "ready") })
		middle, err := c.Attach(within(t), p.ID(), 0) // while it runs
		if err != nil {
			t.Fatal(err)
		}
		defer middle.Close()
		if _, err := p.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
		tail(t, collect(t, middle), all+"last\n")
		if got := <-seen; !strings.HasSuffix(got.stdout, "600000\nlast\n") || got.ExitCode != 0 {
			t.Errorf("a live follower got %q at the end, %+v", got.stdout[max(0, len(got.stdout)-20):], got.Result)
		}
		awaitIdle(t, c)
		past, err := c.Attach(within(t), p.ID(), 0) // from the disk
		if err != nil {
			t.Fatal(err)
		}
		defer past.Close()
		got := collect(t, past)
		tail(t, got, all+"last\n")
		if got.StdoutBytes != int64(len(all)+5) || !got.StdoutTruncated {
			t.Errorf("%+v", got.Result)
		}
	})
	t.Run("RecentIsTheEndOfIt", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "for i in 1 2 3 4 5 6 7 8 9; do echo line $i; sleep 0.02; done; echo ready; read x; echo $x", StreamStdin: true})
		await(t, p, func(s string) bool { return strings.Contains(s, "ready") })
		for recent, want := range map[int64]string{1: "it\n", 6: "ready\nit\n", 13: "line 9\nready\nit\n"} {
			q, err := c.AttachRecent(within(t), p.ID(), recent)
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			defer func() {
				if got := collect(t, q); !strings.HasSuffix(want, got.stdout) || !strings.HasSuffix(got.stdout, "it\n") || recent == 1 && got.stdout != want {
					t.Errorf("the last %d bytes are %q, want %q", recent, got.stdout, want)
				}
			}()
		}
		if _, err := p.Write([]byte("it\n")); err != nil {
			t.Fatal(err)
		}
	})
}
