// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"

	"sandpit.dev/bench"
	"sandpit.dev/bench/plot"
	"sandpit.dev/test/browser/cost"
)

// console is what pages of the web console cost a browser, and open ones a command.
func console(r *bench.Report) string {
	c := r.Console
	if c == nil {
		return ""
	}
	t := newTiming("pages of the console", false)
	t.add("nothing cached: first paint", c.Paint)
	t.add("nothing cached: the list is usable", c.Usable)
	t.add("visited before: first paint", c.PaintAgain)
	t.add("visited before: the list is usable", c.UsableAgain)
	t.add("first rows of "+count(c.Sandboxes)+" sandboxes, after their data", c.Rows)
	long := table{head: []string{"what keeps a page from answering", "tasks of 50 ms or more", "the longest, ms"}}
	add := func(what string, t cost.Tasks) { long.add(what, count(t.Long), plot.Number(t.Longest)) }
	of := "scrolling through " + count(c.Sandboxes) + " sandboxes, "
	add(of+count(c.Scroll.Frames)+" frames", c.Scroll.Tasks)
	add(of+fmt.Sprintf("%s frames, while %d events a second come", count(c.Busy.Frames), c.Rate), c.Busy.Tasks)
	var heap string
	if o := c.Output; o != nil {
		add(fmt.Sprintf("output, %s MB/s for %d s", plot.Number(o.MBPerSecond), o.Seconds), o.Tasks)
		heap = fmt.Sprintf("Scripts of the page of that output had %s MB before, %s MB at most with garbage, and %s MB at its end without. ", plot.Number(o.Before), plot.Number(o.Most), plot.Number(o.After))
	}
	s := "In Debian's Chromium without a window, which shares the machine with the server, over the loopback. Usable is the list of sandboxes once its first row is drawn: from then on it takes clicks and keys. " +
		"A page that scrolls goes from its top to its end by a little more than what is in view with each frame, and then to 60 places far apart.\n\n" + t.String() + long.String() +
		heap + fmt.Sprintf("The page of %s sandboxes had %s elements at most.\n\n", count(c.Sandboxes), count(c.Elements))
	return s + besideTabs(c.Beside)
}

func besideTabs(b *bench.BesideTabs) string {
	if b == nil {
		return ""
	}
	t := newTiming("command beside pages of its sandbox", false)
	t.add("none open", b.Alone)
	t.add(fmt.Sprintf("%d tabs, one of them looked at", b.Tabs), b.One)
	t.add(fmt.Sprintf("%d windows of as many people, all looked at", b.Tabs), b.All)
	ratios := table{head: []string{fmt.Sprintf("median of %d rounds (p25 to p75)", b.Rounds), "times as long at p50 as with none open"}}
	ratios.add(fmt.Sprintf("%d tabs, one of them looked at", b.Tabs), spread(b.OneRatio))
	ratios.add(fmt.Sprintf("%d windows, all looked at", b.Tabs), spread(b.AllRatio))
	return t.String() + ratios.String()
}

// consoleMarks are those of the tables above.
func consoleMarks(r *bench.Report) []mark {
	paint := mark{what: "console, nothing cached: first paint: p50", limit: 150, unit: " ms"}
	usable := mark{what: "console, nothing cached: usable: p50", limit: 300, unit: " ms"}
	rows := mark{what: "console, 10,000 sandboxes: first rows after their data: p50", limit: 100, unit: " ms"}
	elements := mark{what: "console, 10,000 sandboxes: elements of the page", limit: 2000, whole: true}
	scroll := mark{what: "console, 10,000 sandboxes: longest task while it scrolls", limit: 50, unit: " ms"}
	output := mark{what: "console, 10 MB/s of output: longest task", limit: 100, unit: " ms"}
	heap := mark{what: "console, 10 MB/s of output: what its page's scripts hold more at the end", limit: 8, unit: " MB"}
	beside := mark{what: "command beside 20 tabs of its sandbox, one looked at, more time: p50", limit: 5, unit: " %"}
	if c := r.Console; c != nil {
		paint.figure, usable.figure, rows.figure = p50(c.Paint), p50(c.Usable), p50(c.Rows)
		elements.figure = new(float64(c.Elements))
		scroll.figure, scroll.beside = longest(c.Scroll.Tasks, c.Busy.Tasks)
		if c.Sandboxes < 10_000 {
			rows.part = fmt.Sprintf("**of %s alone**", count(c.Sandboxes))
			elements.part, scroll.part = rows.part, rows.part
		}
		if o := c.Output; o != nil {
			output.figure, output.beside = longest(o.Tasks)
			heap.figure = new(o.After - o.Before)
		}
		if b := c.Beside; b != nil && b.OneRatio != nil {
			beside.figure = new(perCent(b.OneRatio.Median))
			beside.beside = fmt.Sprintf("the middle half of %d rounds: %s to %s %%", b.OneRatio.N, plus(perCent(b.OneRatio.Low)), plus(perCent(b.OneRatio.High)))
			if b.Tabs < 20 {
				beside.part = fmt.Sprintf("**%d tabs alone**", b.Tabs)
			}
		}
	}
	return []mark{paint, usable, rows, elements, scroll, output, heap, beside}
}

// longest is the longest of some tasks, of which browsers report those of 50 ms or more.
func longest(all ...cost.Tasks) (figure *float64, beside string) {
	var most cost.Tasks
	for _, t := range all {
		most.Long += t.Long
		most.Longest = max(most.Longest, t.Longest)
	}
	if most.Long == 0 {
		return new(0.0), "none of 50 ms or more"
	}
	return &most.Longest, count(most.Long) + " of 50 ms or more"
}
