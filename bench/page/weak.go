// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandpit.dev/bench"
	"sandpit.dev/bench/plot"
)

// fewRuns is below what a p99 is one of the slowest two.
const fewRuns = 100

// weak lists what speaks against the figures of a report, as Markdown.
func weak(r *bench.Report) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if m := r.Machine; m.Busy() {
		add("The machine was busy: others used %s cores, %s were stolen. What misses its mark may reach it on a quiet machine, or may not.", plot.Number(m.Others), plot.Number(m.Stolen))
	}
	if took := r.Machine.CPUID * cpuids / 1000; took > .1 {
		add("A hypervisor answers CPUID here: of each command's time, sandpit's, the peers' and the host's, %s ms are `true` asking what processor it has. Where that is quick, ratios are larger.", plot.Number(took))
	}
	for _, s := range append(slower(r), longerOnEngine(r)...) {
		add("%s", s)
	}
	if r.Pairs < fewRuns {
		add("Only %d pairs: the p99 is the slowest run.", r.Pairs)
	}
	for _, f := range r.Failures {
		add("Failed at least once: %s", plain(f))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Missing)) {
		add("Not measured: %s: %s", plain(label(name)), sentence(plain(r.Missing[name])))
	}
	if left := leftOut(r); left != nil {
		add("Parts that this run left out: %s.", join(left))
	}
	if r.Prewarmed > 0 {
		add("The server kept %d prewarmed sandboxes, so nothing here says how fast a sandbox is made cold.", r.Prewarmed)
	} else if r.Burst == nil {
		add("The server kept no prewarmed sandboxes: what they give was not measured in this run.")
	}
	return append(all, "Client, server, sandboxes and peers share the same cores, and speak over the loopback: a client elsewhere has its own network's time on top.",
		"It is one machine. Ratios travel better than times, and neither travels well: repeat it on yours.")
}

// cpuids is how often /bin/true asks for it as it starts, with the C library of Debian 12.
const cpuids = 68

// slower names the comparisons in which a peer is faster.
func slower(r *bench.Report) []string {
	var all []string
	for _, c := range []struct {
		what   string
		ratios map[string]*float64
	}{{"to the first command", r.FirstCommandRatio}, {"for a further command", r.ExecRatio}} {
		for _, name := range slices.Sorted(maps.Keys(c.ratios)) {
			if x := c.ratios[name]; x != nil && *x < 1 {
				all = append(all, fmt.Sprintf("Faster than sandpit %s: %s, which takes %s times as long.%s", c.what, plain(label(name)), plot.Number(*x), lighter(name)))
			}
		}
	}
	return all
}

// leftOut names the parts that were not asked for.
func leftOut(r *bench.Report) []string {
	var names []string
	for _, name := range bench.Parts() {
		if _, why := r.Missing[name]; !why && !slices.Contains(r.Parts, name) {
			names = append(names, "`"+name+"`")
		}
	}
	return names
}

func sentence(s string) string {
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}
