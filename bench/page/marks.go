// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sandpit.dev/bench"
	"sandpit.dev/bench/plot"
)

// mark is what the design asks for. The page prints it beside the figure, whether it is reached
// or not.
type mark struct {
	what   string // Markdown
	limit  float64
	least  bool // the figure is to be at least the limit, not at most
	unit   string
	figure *float64 // nil: not measured
	beside string   // what belongs to the figure, Markdown
	part   string   // what of the mark the run did not do, Markdown; "": it is all there
	whole  bool     // it counts
}

func (m mark) reached() bool {
	if m.figure == nil || math.IsNaN(*m.figure) {
		return false
	}
	if m.least {
		return *m.figure >= m.limit
	}
	return *m.figure <= m.limit
}

func (m mark) want() string {
	sign := "≤ "
	if m.least {
		sign = "≥ "
	}
	return sign + short(m.limit) + m.unit
}

// here writes the figure, which there is, with all that belongs to it.
func (m mark) here() string {
	s := strings.Replace(plot.Number(*m.figure), "-", "−", 1) + m.unit
	if m.whole {
		s = short(*m.figure) + m.unit
	}
	for _, more := range []string{m.beside, m.part} {
		if more != "" {
			s += "; " + more
		}
	}
	return s
}

// short writes a limit as people write it: 4, 0.5, 4,000.
func short(v float64) string {
	if v == math.Trunc(v) {
		return count(int(v))
	}
	return fmt.Sprint(v)
}

// The limits that plots show as well.
const (
	firstLimit = 4.0 // ms, p50, cold
	execLimit  = 1.0 // ms, p50
	idleLimit  = 5.0 // ms, p50 of what is done to a disk while nothing runs inside
	liveLimit  = 10.0
)

// marks are those of the design, with the figures of a report.
func marks(r *bench.Report) []mark {
	cold := r.FirstCommand
	if r.Prewarmed > 0 {
		cold = nil
	}
	all := []mark{
		{what: "create → first command, cold: p50", limit: firstLimit, unit: " ms", figure: p50(cold["sandpit"]), beside: beside(inTwo(cold), alone(cold))},
		{what: "create → first command, cold: p99", limit: 15, unit: " ms", figure: p99(cold["sandpit"])},
		{what: "`runc run` takes longer to the first command", limit: 10, least: true, unit: " ×", figure: r.FirstCommandRatio["runc"]},
		{what: "Docker, by the Engine's API, takes longer to the first command", limit: 40, least: true, unit: " ×", figure: r.FirstCommandRatio["docker"]},
		{what: "Docker, by the Engine's API, takes longer to the first command than sandpit on the same Engine", limit: 1.05, least: true, unit: " ×", figure: overEngine(r.FirstCommandRatio, startOf(r))},
		{what: "and to a further command", limit: 10, least: true, unit: " ×", figure: overEngine(r.ExecRatio, furtherOf(r))},
		{what: "command in a sandbox that runs: p50", limit: execLimit, unit: " ms", figure: p50(r.Exec["sandpit"]), beside: alone(r.Exec)},
	}
	for _, more := range []func(*bench.Report) []mark{crowdMarks, diskMarks, pauseMarks, densityMarks, wireMarks, consoleMarks, insideMarks, neighbourMarks, engineMarks} {
		all = append(all, more(r)...)
	}
	return all
}

// overEngine returns how many times longer the Engine's API takes than sandpit on that Engine does: of both
// the median over the pairs with sandpit's native runtime is known, or of one the median over the pairs with the other.
func overEngine(ratios map[string]*float64, pairs *bench.Side) *float64 {
	peer, us := ratios["docker"], ratios["sandpit_docker"]
	switch {
	case peer != nil && us != nil && *us > 0:
		return new(*peer / *us)
	case pairs != nil && pairs.Ratio != nil && pairs.Ratio.Median > 0:
		return new(1 / pairs.Ratio.Median)
	}
	return nil
}

// inTwo says what the same takes as a create and a command, by two requests.
func inTwo(measured map[string]*bench.Figures) string {
	two := p50(measured["sandpit_two_requests"])
	if two == nil {
		return ""
	}
	return "by two requests " + plot.Number(*two) + " ms"
}

// beside joins what belongs to a figure.
func beside(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), "; ")
}

// alone says what is in a figure whoever runs the program: the program, on the bare host in
// the same run. A mark that this is above cannot be reached on that machine.
func alone(measured map[string]*bench.Figures) string {
	host := p50(measured["host"])
	if host == nil {
		return ""
	}
	return "the bare host takes " + plot.Number(*host) + " ms for the program alone"
}

// diskMarks compares the slowest of the workspaces that were measured, and says which were.
func diskMarks(r *bench.Report) []mark {
	var all []mark
	for _, live := range []bool{false, true} {
		limit, when := idleLimit, "nothing runs inside"
		if live {
			limit, when = liveLimit, "a process inside writes"
		}
		for _, op := range []struct {
			name string
			of   func(bench.Disk) *bench.Figures
		}{
			{"snapshot", func(d bench.Disk) *bench.Figures { return d.Snapshot }},
			{"rollback", func(d bench.Disk) *bench.Figures { return d.Rollback }},
			{"fork", func(d bench.Disk) *bench.Figures { return d.Fork }},
		} {
			m := mark{what: op.name + ", " + when + ": p50, 10 to 1,000,000 files", limit: limit, unit: " ms"}
			most := 0
			if r.Travel != nil {
				for _, d := range r.Travel.Disks {
					v := p50(op.of(d))
					if d.Live() != live || d.Crowded() || v == nil { // what a busy neighbour adds is in the table
						continue
					}
					most = max(most, d.Files)
					if m.figure == nil || *v > *m.figure {
						m.figure = v
						m.beside = fmt.Sprintf("the slowest case: %s files, %s", count(d.Files), plain(d.Condition))
					}
				}
			}
			if m.figure != nil && most < million {
				m.part = fmt.Sprintf("**not measured beyond %s files**", count(most))
			}
			all = append(all, m)
		}
	}
	return all
}

const million = 1_000_000

func pauseMarks(r *bench.Report) []mark {
	pause, resume := mark{what: "pause, through REST: p50", limit: 2, unit: " ms"}, mark{what: "resume, through REST: p50", limit: 2, unit: " ms"}
	freeze, thaw := mark{what: "freeze, the kernel's part of a pause: p50", limit: .5, unit: " ms"}, mark{what: "thaw, of a resume: p50", limit: .5, unit: " ms"}
	if v := r.Travel; v != nil {
		pause.figure, resume.figure = p50(v.Pause), p50(v.Resume)
		freeze.figure, thaw.figure = p50(v.Freeze), p50(v.Thaw)
	}
	return []mark{pause, resume, freeze, thaw}
}

// p50 is nil where nothing worked.
func p50(f *bench.Figures) *float64 {
	if f == nil || f.OK == 0 {
		return nil
	}
	return &f.P50
}

func p99(f *bench.Figures) *float64 {
	if f == nil || f.OK == 0 {
		return nil
	}
	return &f.P99
}

// results are the marks by what became of them.
type results struct {
	missed []mark
	part   []mark // reached as far as the run went, which is less far than the mark
	met    []mark
	absent []mark // not measured
}

func sorted(all []mark) (r results) {
	for _, m := range all {
		switch {
		case m.figure == nil:
			r.absent = append(r.absent, m)
		case !m.reached():
			r.missed = append(r.missed, m)
		case m.part != "":
			r.part = append(r.part, m)
		default:
			r.met = append(r.met, m)
		}
	}
	return r
}

// marksTable has the missed ones first.
func marksTable(all []mark) string {
	r := sorted(all)
	t := table{head: []string{"mark", "wanted", "measured here", ""}}
	for _, part := range []struct {
		marks []mark
		word  string
	}{{r.missed, "**missed**"}, {r.part, "reached in part"}, {r.met, "reached"}, {r.absent, "not measured"}} {
		for _, m := range part.marks {
			here := "–"
			if m.figure != nil {
				here = m.here()
			}
			t.add(m.what, m.want(), here, part.word)
		}
	}
	return leftAligned(t.String())
}
