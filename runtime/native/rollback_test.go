// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/internal/leaktest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

func TestRestoreExchangesTheDiskOfWhatRuns(t *testing.T) {
	needRoot(t)
	for _, kind := range []layer.Kind{"", layer.Plain} {
		t.Run("Layers"+string(kind), func(t *testing.T) {
			d := open(t, t.TempDir(), kind)
			t.Cleanup(func() { _ = d.Close() })
			i := box(t, d)
			spec := boxSpec(t)
			spec.ID = i.Handle().ID
			sh(t, i, "", "echo 1 > /workspace/n")
			sh(t, i, "root", "rm -r /etc/skel; echo mine > /etc/hostname.mine")
			kept := sandbox.NewID()
			if _, err := d.Snapshot(t.Context(), spec.ID, kept); err != nil {
				t.Fatal(err)
			}
			sh(t, i, "", "echo 2 > /workspace/n; touch /workspace/more")

			if err := i.Restore(t.Context(), spec, sandbox.NewID()); !fault.Is(err, fault.NotFound) {
				t.Errorf("to what is not there: %v", err)
			}
			if got := sh(t, i, "", "cat /workspace/n"); got != "2\n" {
				t.Errorf("a restore that was refused changed the disk: %q", got)
			}
			spec.Limits.Pids = 50
			for round := range 3 {
				p := begin(t, i, agent.Command{Shell: "while :; do echo 3 >> /workspace/n; done"})
				if round == 1 {
					pause(t, i)
				}
				if err := i.Restore(t.Context(), spec, kept); err != nil {
					t.Fatal(err)
				}
				if i.Paused() {
					t.Error("it is paused")
				}
				if got := sh(t, i, "", "cat /workspace/n; ls /workspace; test -e /etc/skel || cat /etc/hostname.mine"); got != "1\nn\nmine\n" {
					t.Errorf("it holds %q", got)
				}
				if rec, err := agent.NewClient(i.Dial).Process(t.Context(), p.ID()); err == nil && rec.Result == nil {
					t.Errorf("a process of the old life runs: %+v", rec)
				}
			}
			if err := i.Restore(t.Context(), spec, ""); err != nil {
				t.Fatal(err)
			}
			if got := sh(t, i, "", "ls -A /workspace; ls -d /etc/skel"); got != "/etc/skel\n" {
				t.Errorf("a fresh disk holds %q", got)
			}
			if err := i.Stop(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if err := i.Restore(t.Context(), spec, kept); !fault.Is(err, fault.State) {
				t.Errorf("of one that is down: %v", err)
			}
			if err := d.Rollback(t.Context(), spec.ID, kept, spec.Limits); err != nil {
				t.Fatal(err)
			}
			if err := i.Start(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			if got := sh(t, i, "", "cat /workspace/n"); got != "1\n" {
				t.Errorf("it holds %q", got)
			}
		})
	}
}

// forks says how many processes can be forked at once, up to 200.
const forks = `
import os, time
made = []
try:
    while len(made) < 200:
        p = os.fork()
        if p == 0:
            time.sleep(60)
        made.append(p)
except OSError:
    pass
for p in made:
    os.kill(p, 9)
    os.wait()
print(len(made))
`

// A life that an earlier server began is exchanged like any other, and again.
func TestRestoreAfterARestartOfTheServer(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	d := open(t, dir, "")
	spec := boxSpec(t)
	made, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	i := made.(*native.Instance)
	sh(t, i, "", "echo 1 > /workspace/n")
	kept := sandbox.NewID()
	if _, err := d.Snapshot(t.Context(), spec.ID, kept); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = open(t, dir, "")
		found, err := d.Open(t.Context(), i.Handle())
		if err != nil {
			t.Fatal(err)
		}
		i = found.(*native.Instance)
		sh(t, i, "", "echo 2 > /workspace/n; sleep 600 >/dev/null 2>&1 &")
		if round == 1 {
			pause(t, i)
		}
		spec.Limits.Pids = 40 + 10*round
		if err := i.Restore(t.Context(), spec, kept); err != nil {
			t.Fatal(err)
		}
		// The limit is the new one, nothing of the last life runs, and the groups hold commands.
		if got := sh(t, i, "", "cat /workspace/n; ps ax | grep -c '[s]leep 600' || :"); got != "1\n0\n" {
			t.Errorf("round %d: it holds %q", round, got)
		}
		got := strings.TrimSpace(sh(t, i, "", "exec python3 -c '"+forks+"'"))
		// The agent's threads have room of their own, and may need less.
		if n, err := strconv.Atoi(got); err != nil || n > spec.Limits.Pids+1 || n < spec.Limits.Pids-3 {
			t.Errorf("round %d: %q forks within a limit of %d", round, got, spec.Limits.Pids)
		}
	}
	if err := i.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.RemoveSnapshot(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	nothing(t, leaktest.Scope{Dir: dir, Marks: []string{native.PathNamespace(dir)}})
}

// What a rollback of a running sandbox takes.
func BenchmarkRollback(b *testing.B) {
	skiptest.WithoutRoot(b, "the native runtime makes namespaces with mapped id ranges")
	d := watched(b, "", nil)
	i := box(b, d)
	sh(b, i, "", "echo 1 > /workspace/n")
	kept := sandbox.NewID()
	if _, err := d.Snapshot(b.Context(), i.Handle().ID, kept); err != nil {
		b.Fatal(err)
	}
	spec := boxSpec(b)
	spec.ID = i.Handle().ID
	took := map[string][]time.Duration{}
	step := func(name string, f func() error) {
		b.Helper()
		began := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		took[name] = append(took[name], time.Since(began))
	}
	for range b.N {
		begin(b, i, agent.Command{Shell: "echo 2 > /workspace/n; sleep 600"})
		step("all", func() error {
			step("stop", func() error { return i.Stop(b.Context(), 0) })
			step("exchange", func() error { return d.Rollback(b.Context(), spec.ID, kept, spec.Limits) })
			step("start", func() error { return i.Start(b.Context(), spec) })
			return nil
		})
		if got := sh(b, i, "", "cat /workspace/n"); got != "1\n" {
			b.Fatalf("it holds %q", got)
		}
		begin(b, i, agent.Command{Shell: "echo 2 > /workspace/n; sleep 600"})
		step("restore", func() error { return i.Restore(b.Context(), spec, kept) })
		if got := sh(b, i, "", "cat /workspace/n"); got != "1\n" {
			b.Fatalf("it holds %q", got)
		}
	}
	for name, times := range took {
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2].Microseconds()), "µs/"+name+"-p50")
		b.ReportMetric(float64(times[0].Microseconds()), "µs/"+name+"-min")
	}
}
