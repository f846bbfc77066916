// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"strings"
	"testing"

	"sandpit.dev/bench"
)

// of is a comparison of which each side took so many milliseconds.
func of(what string, took map[string]float64, first string, others ...string) bench.Compared {
	c := bench.Compared{What: what, Sides: []bench.Side{{Who: first, Figures: figures(took[first])}}}
	for _, who := range others {
		ratio := took[who] / took[first]
		c.Sides = append(c.Sides, bench.Side{Who: who, Figures: figures(took[who]), Ratio: &bench.Spread{N: 200, Low: ratio, Median: ratio, High: ratio}})
	}
	return c
}

// Marks of an Engine are held against the worst case, and say what of them was not done.
func TestMarksOnAnEngine(t *testing.T) {
	r := &bench.Report{OnDocker: bench.OnDocker{
		Start: &bench.DockerStart{
			First:   of("first", map[string]float64{bench.Plain: 100, bench.Sockets: 80, bench.Pooled: 8}, bench.Plain, bench.Sockets, bench.Pooled),
			Answers: figures(6),
		},
		Execs:  &bench.DockerExecs{InARow: 300, Ours: bench.Held{MemoryBefore: 100, MemoryAfter: 101.5, DescriptorsBefore: 40, DescriptorsAfter: 41}},
		Stream: &bench.DockerStream{Calls: 64, FileMiB: 1024, ManyBeside: bench.Beside{Quiet: figures(20), Beside: figures(40), Added: new(40.5)}},
		Gate: &bench.DockerGate{
			MiB:  1000,
			Down: of("down", map[string]float64{bench.Native: 1000, bench.Sockets: 1000, bench.Streamed: 4000}, bench.Native, bench.Sockets, bench.Streamed),
			Up:   of("up", map[string]float64{bench.Native: 1000, bench.Sockets: 5000, bench.Streamed: 6000}, bench.Native, bench.Sockets, bench.Streamed),
		},
		Alive:  &bench.DockerAlive{Asked: 100, Alive: 99},
		Cycles: &bench.DockerCycles{Ways: []bench.Cycled{{Who: bench.Sockets, Life: &bench.Figures{N: 500, OK: 500}, Left: []string{}}, {Who: bench.Streamed, Life: figures(1), Left: []string{"volume <x>"}}}},
		Inside: &bench.DockerInside{Lacks: []string{"npm"}, Work: []bench.Compared{
			of("rm", map[string]float64{bench.Plain: 10, bench.Sockets: 11, bench.Native: 30}, bench.Plain, bench.Sockets, bench.Native),
			of("fsync", map[string]float64{bench.Plain: 10, bench.Sockets: 9, bench.Native: 20}, bench.Plain, bench.Sockets, bench.Native),
		}},
	}}
	for _, c := range []struct {
		what, here string
		reached    bool
	}{
		{"Docker, by the Engine's API, takes longer to the first command than sandpit on the same Engine", "1.25 ×", true},
		{"on Docker, create → first command from a pool: p50", "8.00 ms", true},
		{"on Docker, container started → first command, less a further command: p50", "6.00 ms", false},
		{"on Docker, 1,000 commands in a row: MB that the Engine has more", "1.50 MB; by as many of its own +0.00 MB; **300 commands**", true},
		{"and descriptors", "1; **300 commands**", false},
		{"64 commands at once over its stream that have their result", "100 %", true},
		{"a download of 1 GiB beside them adds to their p95", "40.5 ms", false},
		{"on Docker, the gate from outside: the slower of download and upload", "1.68 Gbit/s", false},
		{"and through the agent", "1.40 Gbit/s", true},
		{"on Docker, sandboxes alive at once", "99", false},
		{"on Docker, things that 500 lives leave, sandpit on Docker", "0", true},
		{"on Docker, things that 500 lives leave, sandpit on Docker, through the Engine", "1; **200 lives**", false},
		{"work inside, sandpit on Docker: times as long as in a plain container, the slowest kind", "1.10 ×; rm -r, 2,000 files; 0 of 2 kinds beyond the mark; **1 kinds left out**", true},
		{"work inside, native: times as long as in a plain container, the slowest kind", "3.00 ×; rm -r, 2,000 files; 2 of 2 kinds beyond the mark; **1 kinds left out**", false},
	} {
		m := markOf(t, r, c.what)
		if m.figure == nil {
			t.Errorf("%s: there is no figure", c.what)
			continue
		}
		if got := strings.NewReplacer("100.0", "100").Replace(m.here()); got != c.here || m.reached() != c.reached {
			t.Errorf("%s: %q, reached %v; want %q, %v", c.what, got, m.reached(), c.here, c.reached)
		}
	}
	page := onEngine(r)
	for _, want := range []string{"**They left 1 thing, sandpit on Docker, through the Engine:**\n\n- volume &lt;x\\>\n", "The image lacks what these need: npm install, 300 modules."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// Where the Engine itself is faster the page says so.
func TestWhereTheEngineIsFasterIsSaid(t *testing.T) {
	r := &bench.Report{OnDocker: bench.OnDocker{Disks: &bench.DockerDisks{Sizes: []bench.DockerDisk{{
		Files: 10,
		Pause: of("pause, 10 files", map[string]float64{bench.Plain: 10, bench.Sockets: 15, bench.Native: 2}, bench.Plain, bench.Sockets, bench.Native),
	}}}}}
	all := strings.Join(weak(r), "\n")
	if want := "Docker is faster than sandpit on Docker: pause, 10 files, which takes 1.50 × as long with sandpit."; !strings.Contains(all, want) || strings.Contains(all, "sandpit, native:") {
		t.Errorf("got %s", all)
	}
}
