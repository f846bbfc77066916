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

// drawing is a plot of a report.
type drawing struct {
	name string // of its file, without the ending
	alt  string // what it shows, for those who do not see it
	svg  func() []byte
}

// plotNames are all there can be: a report may have something to draw for some of them.
var plotNames = []string{"first-command", "exec", "burst", "operations", "travel-idle", "travel-live", "changes", "inside", "memory", "density", "registered", "records"}

// draw returns the plots of a report, in the order of plotNames.
func draw(r *bench.Report) []drawing {
	var all []drawing
	bars := func(b plot.Bars) {
		if len(b.Rows) > 0 {
			all = append(all, drawing{b.ID, b.Title, b.SVG})
		}
	}
	lines := func(l plot.Lines) {
		if len(l.Series) > 0 {
			all = append(all, drawing{l.ID, l.Title, l.SVG})
		}
	}
	bars(comparison(r, "first-command", "Create → first command, cold, "+when(r), r.FirstCommand, r.FirstCommandRatio,
		&plot.Mark{Value: firstLimit, Label: "mark: p50 ≤ 4 ms"}))
	bars(comparison(r, "exec", "A command in a sandbox that runs", r.Exec, r.ExecRatio,
		&plot.Mark{Value: execLimit, Label: "mark: p50 ≤ 1 ms"}))
	bars(burstBars(r))
	bars(operationBars(r))
	lines(travelLines(r, false))
	lines(travelLines(r, true))
	lines(changeLines(r))
	if s := insideShifts(r); len(s.Rows) > 0 {
		all = append(all, drawing{s.ID, s.Title, s.SVG})
	}
	lines(memoryLines(r))
	lines(densityLines(r))
	lines(registeredLines(r))
	lines(recordLines(r))
	return all
}

// when says how sandboxes were made.
func when(r *bench.Report) string {
	if r.Prewarmed > 0 {
		return fmt.Sprintf("with %d prewarmed", r.Prewarmed)
	}
	return "no pool"
}

// caption names machine and date, as each plot may travel without its page.
func caption(r *bench.Report, how string) []string {
	m := r.Machine
	c := []string{
		how + " Authentication on, every command recorded.",
		fmt.Sprintf("%s: %d cores, %s MB, Linux %s, data on %s; sandpit %s; %s.", m.CPU, m.Cores, count(int(m.MemoryMB)), m.Kernel, m.DataFS, r.Versions["sandpit"], date(r)),
	}
	if m.Busy() {
		c = append(c, fmt.Sprintf("The machine was BUSY: others used %s cores and %s were stolen. Times mean little; ratios of pairs mean something.",
			plot.Number(m.Others), plot.Number(m.Stolen)))
	}
	return c
}

func date(r *bench.Report) string { return r.At.UTC().Format("2006-01-02 15:04 UTC") }

// comparison draws sandpit and its peers, also those that are not there.
func comparison(r *bench.Report, id, title string, figures map[string]*bench.Figures, ratios map[string]*float64, m *plot.Mark) plot.Bars {
	b := plot.Bars{
		ID: id, Title: title, Unit: "ms", Mark: m, Against: "ratio",
		Subtitle: "milliseconds; a ratio is how many times longer a peer takes than sandpit did in the same pair, the median over pairs",
		Caption:  caption(r, fmt.Sprintf("%d interleaved pairs, one after the other.", r.Pairs)),
	}
	f := figures["sandpit"]
	if f == nil {
		return b
	}
	b.Rows = append(b.Rows, bar("sandpit", f, true))
	for _, name := range peers(figures) {
		row := bar(label(name), figures[name], false)
		if x := ratios[name]; x != nil {
			row.Against = times(*x)
		}
		b.Rows = append(b.Rows, row)
	}
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		why, missing := r.Missing[name]
		if figures[name] == nil && missing {
			b.Rows = append(b.Rows, plot.Row{Label: label(name), Missing: why})
		}
	}
	return b
}

func bar(name string, f *bench.Figures, ours bool) plot.Row {
	row := plot.Row{Label: name, Ours: ours, Note: count(f.OK) + " of " + count(f.N) + " worked", Weak: f.OK < f.N}
	if f.OK == 0 {
		row.Missing = fmt.Sprintf("none of %d worked", f.N)
		return row
	}
	row.P50, row.P95, row.P99 = f.P50, f.P95, f.P99
	return row
}

func operationBars(r *bench.Report) plot.Bars {
	b := plot.Bars{
		ID: "operations", Title: "What is done in one sandbox", Unit: "ms", Subtitle: "milliseconds, over REST; sandpit alone",
		Caption: caption(r, "One after the other."),
	}
	o := r.Operations
	add := func(name string, f *bench.Figures) {
		if f != nil {
			b.Rows = append(b.Rows, bar(name, f, true))
		}
	}
	add("command", o.Exec)
	add("command by a shell", o.ExecShell)
	add("code: 1 + 1", o.RunCode)
	add("write 1 MiB", o.Write1MiB)
	add("read 1 MiB", o.Read1MiB)
	add("stop", o.Stop)
	add("start", o.Start)
	if v := r.Travel; v != nil {
		add("pause", v.Pause)
		add("resume", v.Resume)
	}
	return b
}

func travelLines(r *bench.Report, live bool) plot.Lines {
	l := plot.Lines{
		ID: "travel-idle", Title: "A disk is kept, exchanged and copied", Subtitle: "milliseconds; the sandbox runs, and nothing runs inside", Unit: "ms",
		Size: "files in the workspace", Mark: &plot.Mark{Value: idleLimit, Label: "mark: p50 ≤ 5 ms"},
	}
	condition := bench.Idling
	if live {
		l.ID, l.Title, l.Subtitle = "travel-live", "A live disk is kept, exchanged and copied", "milliseconds; a process inside writes as fast as it is let"
		l.Mark = &plot.Mark{Value: liveLimit, Label: "mark: p50 ≤ 10 ms"}
		condition = bench.Writing
	}
	if r.Travel == nil {
		return l
	}
	var c curves
	for _, d := range r.Travel.Disks {
		if d.Condition == condition {
			c.add("snapshot", d.Files, d.Snapshot)
			c.add("rollback", d.Files, d.Rollback)
			c.add("fork", d.Files, d.Fork)
		}
	}
	l.Series, l.Caption = c.series, caption(r, c.runs())
	return l
}

func changeLines(r *bench.Report) plot.Lines {
	l := plot.Lines{
		ID: "changes", Title: "A command, with the list of files that it changed", Subtitle: "milliseconds, over REST; it must not grow with the workspace", Unit: "ms",
		Size: "files in the workspace",
	}
	var c curves
	for _, t := range r.FilesChanged {
		c.add("changes none", t.Files, t.None)
		c.add("changes one", t.Files, t.One)
	}
	l.Series, l.Caption = c.series, caption(r, c.runs()+" Workspaces in turn.")
	return l
}

// curves collects lines, and how many runs are behind their points.
type curves struct {
	series      []plot.Series
	least, most int
}

// add puts a point of a size onto the line of a name, if anything of it worked.
func (c *curves) add(name string, size int, f *bench.Figures) {
	if p50(f) == nil {
		return
	}
	if c.most == 0 || f.OK < c.least {
		c.least = f.OK
	}
	c.most = max(c.most, f.OK)
	at := slices.IndexFunc(c.series, func(s plot.Series) bool { return s.Name == name })
	if at < 0 {
		at = len(c.series)
		c.series = append(c.series, plot.Series{Name: name})
	}
	c.series[at].Points = append(c.series[at].Points, plot.Point{Size: float64(size), P50: f.P50, P95: f.P95})
}

// runs says how many there are behind each point.
func (c *curves) runs() string {
	if c.least < c.most {
		return fmt.Sprintf("%s to %s runs for each point.", count(c.least), count(c.most))
	}
	return count(c.most) + " runs for each point."
}

// image puts a plot onto the page.
func image(all []drawing, name string) string {
	for _, d := range all {
		if d.name == name {
			return fmt.Sprintf("![%s: plot, its figures are in the table below](%s/%s.svg)\n\n", strings.TrimSuffix(plain(d.alt), "."), plots, d.name)
		}
	}
	return ""
}
