// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"

	"sandpit.dev/bench"
)

// The limits of what sandboxes on an Engine take.
const (
	poolLimit     = 10.0 // ms
	answersLimit  = 5.0  // ms
	streamLimit   = 5.0  // ms
	besideLimitMS = 10.0 // ms, added to the p95
	engineLimit   = 2.0  // MB that an Engine may have more: it is not at rest, and a collection of its garbage comes when it will
	outsideLimit  = 2.0  // Gbit/s
	agentLimit    = 1.0  // Gbit/s
	aliveLimit    = 100
	cyclesWanted  = 500
	workLimit     = 1.5 // times as long as in a plain container
)

func engineMarks(r *bench.Report) []mark {
	d := r.OnDocker
	all := startMarks(d.Start)
	for _, more := range [][]mark{heldMarks(d.Execs), streamMarks(d.Stream), gateMarks(d.Gate), aliveMarks(d.Alive), cycleMarks(d.Cycles), workMarks(d.Inside)} {
		all = append(all, more...)
	}
	return all
}

func startMarks(d *bench.DockerStart) []mark {
	claim := mark{what: "on Docker, create → first command from a pool: p50", limit: poolLimit, unit: " ms"}
	answers := mark{what: "on Docker, container started → first command, less a further command: p50", limit: answersLimit, unit: " ms"}
	if d != nil {
		claim.figure, answers.figure = p50Of(d.First, bench.Pooled), p50(d.Answers)
	}
	return []mark{claim, answers}
}

// startOf and furtherOf are sandpit's side of comparisons with the Engine; nil: they were not made.
func startOf(r *bench.Report) *bench.Side {
	if d := r.OnDocker.Start; d != nil {
		return d.First.Of(bench.Sockets)
	}
	return nil
}

func furtherOf(r *bench.Report) *bench.Side {
	if d := r.OnDocker.Execs; d != nil {
		return d.Warm.Of(bench.Sockets)
	}
	return nil
}

// p50Of is of one side of a comparison.
func p50Of(c bench.Compared, who string) *float64 {
	if side := c.Of(who); side != nil {
		return p50(side.Figures)
	}
	return nil
}

func heldMarks(d *bench.DockerExecs) []mark {
	memory := mark{what: "on Docker, 1,000 commands in a row: MB that the Engine has more", limit: engineLimit, unit: " MB"}
	open := mark{what: "and descriptors", limit: 0, whole: true}
	if d != nil && d.InARow > 0 {
		memory.figure, open.figure = new(d.Ours.Grown()), new(float64(d.Ours.Opened()))
		memory.beside = fmt.Sprintf("by as many of its own %s MB", plus(d.Theirs.Grown()))
		if d.InARow < 1000 {
			memory.part = fmt.Sprintf("**%s commands**", count(d.InARow))
			open.part = memory.part
		}
	}
	return []mark{memory, open}
}

func streamMarks(d *bench.DockerStream) []mark {
	warm := mark{what: "on Docker, through the Engine: command in a sandbox that runs: p50", limit: streamLimit, unit: " ms"}
	many := mark{what: "64 commands at once over its stream that have their result", limit: 100, least: true, unit: " %"}
	beside := mark{what: "a download of 1 GiB beside them adds to their p95", limit: besideLimitMS, unit: " ms"}
	if d != nil {
		warm.figure = p50Of(d.Warm, bench.Streamed)
		if f := d.ManyBeside.Quiet; f != nil {
			many.figure = new(f.Success * 100)
		}
		if d.Calls < 64 {
			many.part = fmt.Sprintf("**%d commands**", d.Calls)
		}
		beside.figure = d.ManyBeside.Added
		if one := d.OneBeside.Added; one != nil {
			beside.beside = plus(*one) + " ms to that of one command at a time"
		}
		if d.FileMiB < 1024 {
			beside.part = fmt.Sprintf("**%s MiB**", count(d.FileMiB))
		}
	}
	return []mark{warm, many, beside}
}

func gateMarks(d *bench.DockerGate) []mark {
	all := []mark{
		{what: "on Docker, the gate from outside: the slower of download and upload", limit: outsideLimit, least: true, unit: " Gbit/s"},
		{what: "and through the agent", limit: agentLimit, least: true, unit: " Gbit/s"},
	}
	if d == nil {
		return all
	}
	for i, who := range []string{bench.Sockets, bench.Streamed} {
		down, up := d.GbitPerSecond(d.Down, who), d.GbitPerSecond(d.Up, who)
		if down != nil && up != nil {
			all[i].figure = new(min(*down, *up))
		}
	}
	return all
}

func aliveMarks(d *bench.DockerAlive) []mark {
	m := mark{what: "on Docker, sandboxes alive at once", limit: aliveLimit, least: true, whole: true}
	if d != nil {
		m.figure = new(float64(d.Alive))
	}
	return []mark{m}
}

// cycleMarks has one for each way to reach agents.
func cycleMarks(d *bench.DockerCycles) []mark {
	one := mark{what: "on Docker, things that 500 lives leave", whole: true}
	if d == nil {
		return []mark{one}
	}
	var all []mark
	for _, c := range d.Ways {
		m := one
		m.what += ", " + sideName(c.Who)
		m.figure = new(float64(len(c.Left)))
		if c.Life == nil || c.Life.OK < cyclesWanted {
			n := 0
			if c.Life != nil {
				n = c.Life.OK
			}
			m.part = fmt.Sprintf("**%s lives**", count(n))
		}
		all = append(all, m)
	}
	return all
}

// workMarks is held against the kind of work that is slowest.
func workMarks(d *bench.DockerInside) []mark {
	all := []mark{
		{what: "work inside, sandpit on Docker: times as long as in a plain container, the slowest kind", limit: workLimit, unit: " ×"},
		{what: "work inside, native: times as long as in a plain container, the slowest kind", limit: workLimit, unit: " ×"},
	}
	if d == nil {
		return all
	}
	for i, who := range []string{bench.Sockets, bench.Native} {
		over := 0
		for _, w := range d.Work {
			side := w.Of(who)
			if side == nil || side.Ratio == nil {
				continue
			}
			if side.Ratio.Median > workLimit {
				over++
			}
			if all[i].figure == nil || side.Ratio.Median > *all[i].figure {
				all[i].figure = new(side.Ratio.Median)
				all[i].beside = plain(workText(w.What))
			}
		}
		if all[i].figure == nil {
			continue
		}
		all[i].beside += fmt.Sprintf("; %d of %d kinds beyond the mark", over, len(d.Work))
		if len(d.Lacks) > 0 {
			all[i].part = fmt.Sprintf("**%d kinds left out**", len(d.Lacks))
		}
	}
	return all
}

// longerOnEngine lists where sandpit takes longer than the Engine itself.
func longerOnEngine(r *bench.Report) []string {
	d := r.OnDocker
	var all []bench.Compared
	if d.Start != nil {
		all = append(all, d.Start.First, d.Start.Started)
	}
	if d.Execs != nil {
		all = append(all, d.Execs.Warm)
	}
	if d.Stream != nil {
		all = append(all, d.Stream.AtOnce)
	}
	if d.Disks != nil {
		for _, size := range d.Disks.Sizes {
			all = append(all, verbsOf(size)...)
		}
	}
	var said []string
	for _, c := range all {
		if len(c.Sides) == 0 || c.Sides[0].Who != bench.Plain {
			continue
		}
		for _, side := range c.Sides[1:] {
			if side.Ratio != nil && side.Ratio.Median > 1 {
				said = append(said, fmt.Sprintf("Docker is faster than %s: %s, which takes %s as long with sandpit.", sideName(side.Who), plain(c.What), times(side.Ratio.Median)))
			}
		}
	}
	return said
}
