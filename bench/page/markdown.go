// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"

	"sandpit.dev/bench"
	"sandpit.dev/bench/plot"
)

// plain makes text safe between Markdown's own signs: names of processors, reasons and
// messages are another's words. It stays on one line, so that it ends no table.
func plain(s string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(s), " ") {
		switch {
		case r == '<':
			b.WriteString("&lt;")
			continue
		case r == '&':
			b.WriteString("&amp;")
			continue
		case strings.ContainsRune("\\`*_[]#|~>", r):
			b.WriteByte('\\')
		case r < ' ' || r == 0x7f:
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// table is one of Markdown's. Its cells are Markdown, on one line each.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// String is nothing for a table without rows. The first column is at the left, numbers are at
// the right.
func (t *table) String() string {
	if len(t.rows) == 0 {
		return ""
	}
	var b strings.Builder
	row := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	row(t.head)
	b.WriteString("| --- |" + strings.Repeat(" ---: |", len(t.head)-1) + "\n")
	for _, cells := range t.rows {
		row(cells)
	}
	return b.String() + "\n"
}

// timing is a table of figures in milliseconds. Those that are nil are left out.
type timing struct {
	table
	ratios bool
}

func newTiming(what string, ratios bool) *timing {
	t := &timing{table: table{head: []string{what + ", ms", "worked", "min", "p50", "p95", "p99"}}, ratios: ratios}
	if ratios {
		t.head = append(t.head, "ratio")
	}
	return t
}

// add takes names that are Markdown.
func (t *timing) add(name string, f *bench.Figures, ratio ...*float64) {
	if f == nil {
		return
	}
	cells := []string{name, worked(f)}
	for _, v := range []float64{f.Min, f.P50, f.P95, f.P99} {
		if f.OK == 0 {
			cells = append(cells, "–")
			continue
		}
		cells = append(cells, plot.Number(v))
	}
	if t.ratios {
		if len(ratio) > 0 && ratio[0] != nil {
			cells = append(cells, times(*ratio[0]))
		} else {
			cells = append(cells, "")
		}
	}
	t.table.add(cells...)
}

// worked says how many runs did, and says it louder when some did not.
func worked(f *bench.Figures) string {
	if f.OK == f.N {
		return count(f.OK) + " of " + count(f.N)
	}
	return "**" + count(f.OK) + " of " + count(f.N) + "**"
}

func times(v float64) string { return plot.Number(v) + " ×" }

func milliseconds(v float64) string { return plot.Number(v) + " ms" }

// plus writes a difference with its sign.
func plus(v float64) string {
	if v < 0 {
		return "−" + plot.Number(-v)
	}
	return "+" + plot.Number(v)
}

// count writes 1000000 as 1,000,000.
func count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// join writes a list: a, b and c.
func join(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}
