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

// text writes the page.
func text(r *bench.Report, drawn []drawing) []byte {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\n")
	b.WriteString("This page is what `sandpit bench --report DIR` wrote about one run, with the directory of this page for DIR, and [report.json](" + Data + ") is that run. Do not edit it: " +
		"a test makes it anew from the report and compares (`go test ./bench/page`), and so can you (`sandpit bench --from DIR/benchmarks/report.json --report DIR`).\n\n")
	machine(&b, r)
	b.WriteString("## The marks\n\n")
	b.WriteString("What the design asks for, beside what this run measured; what is missed comes first.\n\n")
	all := marks(r)
	of := sorted(all)
	fmt.Fprintf(&b, "**%d missed, %d reached in part, %d reached, %d not measured.**\n\n", len(of.missed), len(of.part), len(of.met), len(of.absent))
	b.WriteString(marksTable(all))
	b.WriteString("## What is weak here\n\n")
	for _, w := range weak(r) {
		b.WriteString("- " + w + "\n")
	}
	b.WriteString("\n")
	for _, s := range sections(r) {
		if s.body == "" {
			continue
		}
		b.WriteString("## " + s.title + "\n\n")
		for _, name := range s.plots {
			b.WriteString(image(drawn, name))
		}
		b.WriteString(s.body)
	}
	method(&b, r)
	return []byte(strings.TrimRight(b.String(), "\n") + "\n")
}

// machine says on what and when, and whether the machine had other things to do.
func machine(b *strings.Builder, r *bench.Report) {
	m := r.Machine
	t := table{head: []string{"this run", ""}}
	t.add("date", date(r)+fmt.Sprintf(", %s s long", count(int(r.Took))))
	t.add("processor", fmt.Sprintf("%s, %d cores", plain(m.CPU), m.Cores))
	t.add("memory", count(int(m.MemoryMB))+" MB")
	t.add("kernel", "Linux "+plain(m.Kernel))
	t.add("data on", plain(m.DataFS))
	if m.CPUID > 0 {
		t.add("one CPUID instruction", plot.Number(m.CPUID)+" µs; a program with shared libraries starts with some 70 of them, which a hypervisor answers where there is one")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		t.add(plain(label(name)), plain(r.Versions[name]))
	}
	t.add("load before, and after with its own", plot.Number(m.LoadBefore)+", "+plot.Number(m.LoadAfter))
	t.add("cores that other processes used, and that were stolen", plot.Number(m.Others)+", "+plot.Number(m.Stolen))
	if m.Busy() {
		b.WriteString("> **The machine was busy**: meanwhile others used " + plot.Number(m.Others) + " of " + fmt.Sprint(m.Cores) + " cores and " + plot.Number(m.Stolen) +
			" were stolen by the hypervisor. Times mean little; ratios, which are taken pair by pair, mean something.\n\n")
	}
	b.WriteString(leftAligned(t.String()))
}

// Summary is the run in one sentence of Markdown, without a full stop, for other pages; "" where
// there is nothing to say. Of a busy machine it gives no times, only ratios, which are taken pair by pair.
func Summary(r *bench.Report) string {
	v := p50(r.FirstCommand["sandpit"])
	if v == nil {
		return ""
	}
	where := fmt.Sprintf("%d cores, %s; marks missed: %d", r.Machine.Cores, r.At.UTC().Format("2006-01-02"), len(sorted(marks(r)).missed))
	var against []string
	for _, name := range []string{"runc", "docker"} {
		if x := r.FirstCommandRatio[name]; x != nil {
			against = append(against, fmt.Sprintf("%s takes %s times as long", plain(label(name)), plot.Number(*x)))
		}
	}
	s := "p50 " + milliseconds(*v)
	if r.Machine.Busy() {
		s = "on a busy machine, where ratios alone mean something"
	}
	if len(against) > 0 {
		s += "; " + join(against)
	}
	return fmt.Sprintf("%s (%s)", s, where)
}
