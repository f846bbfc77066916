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

func burst(r *bench.Report) string {
	b := r.Burst
	if b == nil {
		return ""
	}
	t := newTiming("create → first command", false)
	var last, without string
	for _, c := range b.Servers {
		with := prewarmed(c.Prewarmed)
		t.add("one after the other, in pairs, "+with, c.Alone)
		t.add(fmt.Sprintf("%s at once, %s", count(b.Sandboxes), with), c.AtOnce)
		t.add("one each 50 ms, "+with, c.Staggered)
		if c.Last != nil {
			last += fmt.Sprintf("Of %s at once the last one has its answer after %s, %s (median over %d crowds).\n\n", count(b.Sandboxes), milliseconds(*c.Last), with, b.Rounds)
		}
		if c.Compute.Missing != "" {
			without += fmt.Sprintf("ComputeSDK's loop was not measured, %s: %s\n\n", with, sentence(plain(c.Compute.Missing)))
		}
	}
	servers := "One server, which keeps no sandboxes prewarmed. "
	if len(b.Servers) > 1 {
		servers = "Two servers in turn: one keeps prewarmed sandboxes, made ahead of who asks for them; there are fewer of them than a crowd has members. The other keeps none. "
	}
	s := asked(r) + servers +
		"One after the other means a quarter of a second after the last was answered, in which others are prewarmed. " +
		"At once means that all ask in the same moment and none is deleted before all have their answer.\n\n" + t.String() + last
	return s + compute(b) + without
}

// compute is ComputeSDK's loop.
func compute(b *bench.Burst) string {
	t := newTiming("ComputeSDK's loop", false)
	for _, c := range b.Servers {
		with := prewarmed(c.Prewarmed)
		t.add("one after the other, "+with, c.Compute.Sequential)
		t.add("its identity probe", c.Compute.Probe)
		t.add("its `node -v`", c.Compute.Node)
		t.add("one each 200 ms, "+with, c.Compute.Staggered)
		t.add("all at once, "+with, c.Compute.Burst)
	}
	if len(t.rows) == 0 {
		return ""
	}
	return "The same by the loop of ComputeSDK's public benchmark: create, a probe that tells whether the sandbox is a fresh one, and `node -v`, each a request. Nothing is left out as an outlier.\n\n" + t.String()
}

func prewarmed(n int) string {
	if n == 0 {
		return "none prewarmed"
	}
	return fmt.Sprintf("%d prewarmed", n)
}

func throughput(r *bench.Report) string {
	x := r.Throughput
	if x == nil {
		return ""
	}
	t := newTiming("without a pause", false)
	speeds := table{head: []string{"at the same time", "a second"}}
	for _, b := range x.Exec {
		t.add(fmt.Sprintf("command, %d clients", b.Clients), b.Wait)
		if b.PerSecond != nil {
			speeds.add(fmt.Sprintf("commands of %d clients (median over rounds)", b.Clients), plot.Number(*b.PerSecond))
		}
	}
	if l := x.Sustained; l != nil {
		t.add(fmt.Sprintf("create, command and delete, %d at a time", l.Clients), l.Life)
		speeds.add(fmt.Sprintf("create, command and delete, %d at a time", l.Clients), plot.Number(l.PerSecond))
		speeds.add("the same for each core", plot.Number(l.PerCore))
	}
	how := strings.TrimSpace(asked(r))
	if how != "" {
		how += "\n\n"
	}
	return how + t.String() + speeds.String() + sustained(x.Sustained)
}

// sustained tells what many lives cost, and what they left.
func sustained(l *bench.Sustained) string {
	if l == nil {
		return ""
	}
	s := fmt.Sprintf("%s s of create, command and delete cost %s of the server's processor time each, and took the server's memory from %s to %s MB (PSS). ",
		plot.Number(l.Seconds), milliseconds(l.CPU), plot.Number(l.Before), plot.Number(l.After))
	switch {
	case l.Left == nil:
		return s + "What they left on the host was not looked for.\n\n"
	case len(l.Left) == 0:
		s += "They left nothing on the host: "
	default:
		s += fmt.Sprintf("**They left %s:**\n\n", things(len(l.Left)))
		for _, left := range l.Left {
			s += "- " + plain(left) + "\n"
		}
		s += "\nThis is "
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(l.Kept)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", plain(kind), l.Kept[kind]))
	}
	return s + "compared with what was there before, kind by kind (" + join(kinds) + ").\n\n"
}

func things(n int) string {
	if n == 1 {
		return "1 thing"
	}
	return count(n) + " things"
}

// burstBars shows what each of a crowd waits.
func burstBars(r *bench.Report) plot.Bars {
	b := plot.Bars{
		ID: "burst", Title: "Create → first command, alone and in a crowd", Unit: "ms",
		Subtitle: "milliseconds, from the moment that each of them asks; sandpit alone, with prewarmed sandboxes and without",
	}
	if r.Burst == nil {
		return b
	}
	b.Subtitle = fmt.Sprintf("milliseconds, from the moment that each of %d asks; sandpit, with prewarmed sandboxes and without", r.Burst.Sandboxes)
	b.Mark = &plot.Mark{Value: burstLimit, Label: fmt.Sprintf("mark: p50 ≤ %s ms at once", short(burstLimit))}
	b.Caption = caption(r, "Two servers in turn.")
	add := func(label string, c bench.Crowd, f *bench.Figures) {
		if f != nil {
			row := bar(label, f, true)
			row.Note = prewarmed(c.Prewarmed) + ", " + row.Note
			b.Rows = append(b.Rows, row)
		}
	}
	for _, c := range r.Burst.Servers {
		add("one after the other", c, c.Alone)
	}
	for _, c := range r.Burst.Servers {
		add("one each 50 ms", c, c.Staggered)
	}
	for _, c := range r.Burst.Servers {
		add(fmt.Sprintf("%d at once", r.Burst.Sandboxes), c, c.AtOnce)
	}
	return b
}

// crowdMarks are those of prewarmed sandboxes, crowds and lives without a pause.
func crowdMarks(r *bench.Report) []mark {
	with := mark{what: "create → first command, prewarmed: p50", limit: 2, unit: " ms"}
	at := mark{what: "100 at once, none prewarmed: p50", limit: burstLimit, unit: " ms"}
	all := mark{what: "100 at once: those that got an answer", limit: 100, least: true, unit: " %"}
	if r.Prewarmed > 0 {
		with.figure, with.beside = p50(r.FirstCommand["sandpit"]), prewarmed(r.Prewarmed)
	}
	if r.Burst != nil && r.Burst.Sandboxes >= 100 {
		for _, c := range r.Burst.Servers {
			switch {
			case c.Prewarmed == 0:
				at.figure = p50(c.AtOnce)
			case with.figure == nil:
				with.figure, with.beside = p50(c.Alone), prewarmed(c.Prewarmed)
				if host := alone(r.FirstCommand); host != "" {
					with.beside += ", " + host
				}
			}
			if f := c.AtOnce; f != nil && (all.figure == nil || f.Success*100 < *all.figure) {
				all.figure, all.beside = new(f.Success*100), fmt.Sprintf("%d of %d, %s", f.OK, f.N, prewarmed(c.Prewarmed))
			}
		}
	}
	rate := mark{what: "create, command and delete over 5 minutes, a second and core", limit: 150, least: true}
	left := mark{what: "things that those lives leave on the host", limit: 0, whole: true}
	if r.Throughput != nil && r.Throughput.Sustained != nil {
		l := r.Throughput.Sustained
		rate.figure = &l.PerCore
		if l.Left != nil {
			left.figure = new(float64(len(l.Left)))
		}
		if l.Seconds < 300 {
			rate.part = fmt.Sprintf("**over %s s alone**", plot.Number(l.Seconds))
			left.part = rate.part
		}
	}
	return []mark{with, at, all, rate, left}
}

const burstLimit = 80.0 // ms, p50 of 100 at once
