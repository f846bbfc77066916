// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/layer"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// tearing writes the same number to a log, to a database, and to a file of its own, in
// that order, without a pause, and removes old files.
const tearing = `
import os, sqlite3
os.mkdir("/workspace/files")
db = sqlite3.connect("/workspace/db", isolation_level=None)
db.execute("pragma journal_mode=wal")
db.execute("pragma synchronous=normal")
db.execute("create table t (n integer primary key, x text)")
log = os.open("/workspace/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
n = 0
while True:
    n += 1
    os.write(log, b"%08d\n" % n)
    db.execute("insert into t values (?, ?)", (n, "x" * 100))
    name = "/workspace/files/%d" % n
    with open(name + ".tmp", "wb") as f:
        f.write(b"%08d" % n * 512)
    os.rename(name + ".tmp", name)
    if n > 100:
        os.unlink("/workspace/files/%d" % (n - 100))
    if n >= 200 and n % 20 == 0:
        print(n, flush=True)
`

// torn says what is wrong with what tearing left, and else how far it had come.
const torn = `
import os, sqlite3
lines = open("/workspace/log", "rb").read().split(b"\n")
assert lines.pop() == b"", "half a line"
log = len(lines)
assert lines == [b"%08d" % (n + 1) for n in range(log)], "lines"
db = sqlite3.connect("/workspace/db")
assert db.execute("pragma integrity_check").fetchall() == [("ok",)], "integrity"
count, last = db.execute("select count(*), max(n) from t").fetchone()
assert count == last and log - 1 <= last <= log, ("database", count, last, "log", log)
names = os.listdir("/workspace/files")
half = [n for n in names if n.endswith(".tmp")]
assert len(half) <= 1, half
files = sorted(int(n) for n in names if not n.endswith(".tmp"))
assert last - 1 <= files[-1] <= last, ("file", files[-1], "database", last)
assert files == list(range(files[0], files[-1] + 1)) and 99 <= len(files) <= 101, files
for n in files:
    assert open("/workspace/files/%d" % n, "rb").read() == b"%08d" % n * 512, ("content", n)
print(log)
`

// phases are what a snapshot's time went to, by the driver's checkpoints.
type phases struct {
	mu   sync.Mutex
	last time.Time
	took map[string][]time.Duration
}

func (p *phases) at(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.took == nil {
		p.took = map[string][]time.Duration{}
	}
	p.took[name] = append(p.took[name], now.Sub(p.last))
	p.last = now
}

func (p *phases) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
}

// median and p90 of a phase.
func (p *phases) of(name string) (median, p90 time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := slices.Sorted(slices.Values(p.took[name]))
	if len(s) == 0 {
		return 0, 0
	}
	return s[len(s)/2], s[len(s)*9/10]
}

// A snapshot of what is written to without a pause is of one instant.
func TestALiveSnapshotIsNotTorn(t *testing.T) {
	needRoot(t)
	for _, kind := range []layer.Kind{"", layer.Plain} {
		t.Run("Layers"+string(kind), func(t *testing.T) {
			var p phases
			d := watched(t, kind, p.at)
			i := box(t, d)
			w := begin(t, i, agent.Command{Argv: []string{"python3", "-c", tearing}})
			if _, err := w.Next(t.Context()); err != nil {
				t.Fatalf("the writer did not begin: %v, %+v", err, w.Result())
			}
			count := 50
			if kind == layer.Plain {
				count = 10 // each is a copy
			}
			var kept []sandbox.ID
			began := time.Now()
			for range count {
				if _, err := w.Next(t.Context()); err != nil { // it has gone on
					t.Fatal(err)
				}
				id := sandbox.NewID()
				p.begin()
				if _, err := d.Snapshot(t.Context(), i.Handle().ID, id); err != nil {
					t.Fatal(err)
				}
				kept = append(kept, id)
			}
			t.Logf("%d snapshots in %v", count, time.Since(began))
			for _, name := range []string{"snapshot.synced", "snapshot.frozen", "snapshot.taken", "snapshot.thawed"} {
				median, p90 := p.of(name)
				t.Logf("until %s: median %v, p90 %v", name, median, p90)
			}
			if err := i.Stop(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			for n, id := range kept {
				spec := boxSpec(t)
				spec.From = id
				fork, err := d.Create(t.Context(), spec)
				if err != nil {
					t.Fatal(err)
				}
				got := strings.TrimSpace(sh(t, fork, "", "python3 -c '"+strings.ReplaceAll(torn, "'", `"`)+"' 2>&1 | tail -1"))
				if len(got) == 0 || strings.Trim(got, "0123456789") != "" {
					t.Errorf("snapshot %d is torn: %s", n, got)
				}
				if n == 0 || n == len(kept)-1 {
					t.Logf("snapshot %d has %s lines", n, got)
				}
				if err := fork.Remove(t.Context()); err != nil {
					t.Error(err)
				}
				if err := d.RemoveSnapshot(t.Context(), id); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// watched opens a driver that tells its checkpoints.
func watched(t testing.TB, kind layer.Kind, at func(string)) *native.Driver {
	t.Helper()
	program, err := agentProgram()
	if err != nil {
		t.Fatal(err)
	}
	d, err := native.Open(context.Background(), native.Options{Dir: t.TempDir(), Agent: program, Layers: kind, Checkpoint: at})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// What a snapshot takes of an idle sandbox and of a busy one, and how long that stands
// still; a rollback of one that is down; and a create from a snapshot.
func BenchmarkSnapshot(b *testing.B) {
	for _, writer := range []string{"sleep 600", "while :; do head -c 1M /dev/zero > /workspace/f; echo x >> /workspace/g; done"} {
		name := "Idle"
		if writer != "sleep 600" {
			name = "Writing"
		}
		b.Run(name, func(b *testing.B) {
			skiptest.WithoutRoot(b, "the native runtime makes namespaces with mapped id ranges")
			var p phases
			d := watched(b, "", p.at)
			i := box(b, d)
			begin(b, i, agent.Command{Shell: writer})
			var all, create []time.Duration
			for range b.N {
				id := sandbox.NewID()
				began := time.Now()
				p.begin()
				if _, err := d.Snapshot(b.Context(), i.Handle().ID, id); err != nil {
					b.Fatal(err)
				}
				all = append(all, time.Since(began))
				spec := boxSpec(b)
				spec.From = id
				began = time.Now()
				fork, err := d.Create(b.Context(), spec)
				if err != nil {
					b.Fatal(err)
				}
				create = append(create, time.Since(began))
				if err := fork.Remove(b.Context()); err != nil {
					b.Fatal(err)
				}
				if err := d.RemoveSnapshot(b.Context(), id); err != nil {
					b.Fatal(err)
				}
			}
			for _, point := range []string{"snapshot.synced", "snapshot.frozen", "snapshot.taken", "snapshot.thawed"} {
				median, _ := p.of(point)
				b.ReportMetric(float64(median.Microseconds()), "µs/"+point)
			}
			slices.Sort(all)
			slices.Sort(create)
			b.ReportMetric(float64(all[len(all)/2].Microseconds()), "µs/snapshot")
			b.ReportMetric(float64(create[len(create)/2].Microseconds()), "µs/create")
		})
	}
}
