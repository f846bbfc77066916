// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"slices"

	"sandpit.dev/bench"
	"sandpit.dev/bench/plot"
)

func idle(r *bench.Report) string {
	i := r.Idle
	if i == nil {
		return ""
	}
	t := table{head: []string{fmt.Sprintf("%s sandboxes that ran a command and do nothing, each", count(i.Sandboxes)), "figure"}}
	t.add("memory of its processes (PSS: shared pages by their share)", plot.Number(i.PSS)+" MB")
	t.add("by which the host's available memory fell: kernel, page cache in use and the server included", plot.Number(i.Available)+" MB")
	t.add("of which the server", plot.Number(i.Server)+" MB")
	t.add("processes", plot.Number(i.Processes))
	return t.String()
}

func density(r *bench.Report) string {
	d := r.Density
	if d == nil {
		return ""
	}
	each := table{head: []string{"sandboxes alive", "MB each (PSS)", "host's MB each", "of them the server's", "processes each", "threads of process 1", "at most", "server's descriptors each"}}
	t := newTiming("beside those that are alive", false)
	for _, c := range d.Steps {
		n := count(c.Alive)
		each.add(n, plot.Number(c.PSS), plot.Number(c.Available), plot.Number(c.Server), plot.Number(c.Processes), plot.Number(c.Threads), fmt.Sprint(c.ThreadsMost), plot.Number(c.Descriptors))
		t.add(n+": create → first command of one more", c.First)
		t.add(n+": its create", c.Create)
		t.add(n+": its delete", c.Delete)
		t.add(n+": command in one of them", c.Exec)
		t.add(n+": list a page of 50", c.List)
	}
	s := "Sandboxes that ran a command and do nothing, more and more of them, and what one more costs among so many. The host's memory is by how much less of it is available, kernel and page cache included.\n\n" +
		each.String() + t.String()
	s += fmt.Sprintf("Alive at most: %s of %s that were asked for, on a host with pid_max %s and %s descriptors for the server.", count(d.Alive), count(d.Asked), count(d.PidMax), count(d.FilesMax))
	if d.Ended != "" {
		s += " What ended it: " + sentence(plain(d.Ended))
	}
	return s + "\n\n"
}

func registered(r *bench.Report) string {
	x := r.Registered
	if x == nil {
		return ""
	}
	t := newTiming("stopped sandboxes", false)
	for _, l := range listed(r) {
		n := count(l.Sandboxes)
		t.add(n+": list a page of 50", l.List)
		t.add(n+": list those that run", l.Running)
		t.add(n+": search one", l.Search)
		t.add(n+": get one", l.Get)
	}
	return t.String() + fmt.Sprintf("With %s of them the server starts in %s ms and has %s MB.\n\n", count(x.Sandboxes), plot.Number(x.Start), plot.Number(x.Server))
}

// listed are all sizes, the last one included.
func listed(r *bench.Report) []bench.Listed {
	if r.Registered == nil {
		return nil
	}
	return append(slices.Clone(r.Registered.Before), r.Registered.Listed)
}

func records(r *bench.Report) string {
	if r.Records == nil {
		return ""
	}
	t := newTiming("commands on record", false)
	speeds := table{head: []string{"commands recorded for that, for real", "a second"}}
	for i, s := range r.Records.Steps {
		n := count(s.Commands)
		t.add(n+": one more command", s.Exec)
		t.add(n+": the newest 50 events", s.Newest)
		t.add(n+": the oldest 50", s.Oldest)
		t.add(n+": events of a rare type", s.Typed)
		t.add(n+": all about one command", s.One)
		t.add(n+": the newest 1,000 commands", s.Processes)
		t.add(n+": those that run, none", s.Running)
		t.add(n+": one command", s.Get)
		if s.PerSecond > 0 || i > 0 {
			speeds.add("up to "+n, plot.Number(s.PerSecond))
		}
	}
	return "All in one sandbox, which is the worst case for whoever asks about it.\n\n" + t.String() + speeds.String()
}

func densityLines(r *bench.Report) plot.Lines {
	l := plot.Lines{
		ID: "density", Title: "One more sandbox among many", Subtitle: "milliseconds, over REST; the others ran a command and do nothing", Unit: "ms",
		Size: "sandboxes alive",
	}
	if r.Density == nil {
		return l
	}
	var c curves
	for _, s := range r.Density.Steps {
		c.add("first command", s.Alive, s.First)
		c.add("command", s.Alive, s.Exec)
		c.add("delete", s.Alive, s.Delete)
		c.add("list 50", s.Alive, s.List)
	}
	l.Series, l.Caption = c.series, caption(r, c.runs())
	return l
}

func memoryLines(r *bench.Report) plot.Lines {
	l := plot.Lines{
		ID: "memory", Title: "Memory of an idle sandbox among many", Subtitle: "megabytes each, the mean; the host's part has kernel, page cache and server in it", Unit: "MB",
		Size: "sandboxes alive", Means: true, Mark: &plot.Mark{Value: memoryLimit, Label: "mark: PSS ≤ 3 MB"}, Caption: caption(r, "Each ran a command before."),
	}
	if r.Density == nil {
		return l
	}
	var pss, host []plot.Point
	for _, c := range r.Density.Steps {
		// Of so few the server's own growth and the host's noise are larger than theirs.
		if c.Alive < 10 {
			continue
		}
		pss = append(pss, plot.Point{Size: float64(c.Alive), P50: c.PSS})
		host = append(host, plot.Point{Size: float64(c.Alive), P50: c.Available})
	}
	if len(pss) > 0 {
		l.Series = []plot.Series{{Name: "PSS", Points: pss}, {Name: "host", Points: host}}
	}
	return l
}

func recordLines(r *bench.Report) plot.Lines {
	l := plot.Lines{
		ID: "records", Title: "A growing record", Subtitle: "milliseconds, over REST; all commands are of one sandbox", Unit: "ms",
		Size: "commands on record",
	}
	if r.Records == nil {
		return l
	}
	var c curves
	for _, s := range r.Records.Steps {
		c.add("command", s.Commands, s.Exec)
		c.add("newest 50", s.Commands, s.Newest)
		c.add("oldest 50", s.Commands, s.Oldest)
		c.add("of one", s.Commands, s.One)
	}
	l.Series, l.Caption = c.series, caption(r, c.runs())
	return l
}

func registeredLines(r *bench.Report) plot.Lines {
	l := plot.Lines{
		ID: "registered", Title: "Many sandboxes that are stopped", Subtitle: "milliseconds, over REST", Unit: "ms",
		Size: "sandboxes registered",
	}
	var c curves
	for _, x := range listed(r) {
		c.add("list 50", x.Sandboxes, x.List)
		c.add("that run", x.Sandboxes, x.Running)
		c.add("search", x.Sandboxes, x.Search)
		c.add("get one", x.Sandboxes, x.Get)
	}
	l.Series, l.Caption = c.series, caption(r, c.runs())
	return l
}

const (
	memoryLimit = 3.0    // MB, PSS of an idle sandbox
	pidMaxSmall = 32_768 // a host with that many pids holds fewer sandboxes
)

// densityMarks are of sandboxes that are alive, taken where there were most of them.
func densityMarks(r *bench.Report) []mark {
	memory := mark{what: "memory of an idle sandbox (PSS)", limit: memoryLimit, unit: " MB"}
	threads := mark{what: "threads of a process 1", limit: 5, whole: true}
	descriptors := mark{what: "descriptors of the server for a sandbox", limit: 3}
	alive := mark{what: "sandboxes alive at the same time", limit: 4000, least: true, whole: true}
	if i := r.Idle; i != nil {
		memory.figure = &i.PSS
		memory.beside = fmt.Sprintf("the host's available memory fell by %s MB each, with %s alive", plot.Number(i.Available), count(i.Sandboxes))
	}
	d := r.Density
	if d == nil || len(d.Steps) == 0 {
		return []mark{memory, threads, descriptors, alive}
	}
	c := d.Steps[len(d.Steps)-1]
	if memory.figure == nil || c.PSS > *memory.figure {
		memory.figure = &c.PSS
		memory.beside = fmt.Sprintf("the host's available memory fell by %s MB each, with %s alive", plot.Number(c.Available), count(c.Alive))
	}
	with := fmt.Sprintf("with %s alive", count(c.Alive))
	threads.figure, threads.beside = new(float64(c.ThreadsMost)), "the most of any, "+with
	descriptors.figure, descriptors.beside = &c.Descriptors, with
	if d.PidMax > pidMaxSmall {
		alive.limit = 5000
	}
	if float64(d.Asked) >= alive.limit {
		alive.figure = new(float64(d.Alive))
		if d.Ended != "" {
			alive.beside = plain(d.Ended)
		}
	}
	return []mark{memory, threads, descriptors, alive}
}
