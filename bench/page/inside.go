// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"

	"sandpit.dev/bench"
	"sandpit.dev/bench/plot"
)

func transfer(r *bench.Report) string {
	if r.Transfer == nil {
		return ""
	}
	t := newTiming("files", false)
	speeds := table{head: []string{"speed of the median run, 1 MB is 1,000,000 bytes", "bytes", "upload, MB/s", "download, MB/s"}}
	for _, m := range r.Transfer.Files {
		t.add("upload "+plain(m.What), m.Up)
		t.add("download "+plain(m.What), m.Down)
		speed := func(v *float64) string {
			if v == nil {
				return "–"
			}
			return plot.Number(*v)
		}
		if m.UpSpeed != nil || m.DownSpeed != nil {
			speeds.add(plain(m.What), count(int(m.Bytes)), speed(m.UpSpeed), speed(m.DownSpeed))
		}
	}
	if r.Transfer.Listing != nil {
		t.add("list a directory of 100,000 files", r.Transfer.Listing)
		t.add("list it with all about each, up to 16 MiB", r.Transfer.Details)
	}
	return "Up and down in turn, whole, with the content checked each time.\n\n" + t.String() + speeds.String()
}

// workText says what a kind of work is.
func workText(kind string) string {
	switch kind {
	case "cpu":
		return "arithmetic and hashing"
	case "sqlite":
		return "SQLite, 60,000 rows"
	case "git":
		return "git clone, 2,000 files"
	case "pip":
		return "pip install, 300 modules"
	case "untar":
		return "untar, 2,000 files"
	case "tests":
		return "1,000 small tests"
	case "copy":
		return "cp -r, 2,000 files"
	case "rm":
		return "rm -r, 2,000 files"
	case "grep":
		return "grep -r, 2,000 files"
	case "status":
		return "git status, 2,000 files"
	case "compile":
		return "cc, 8 files"
	case "npm":
		return "npm install, 300 modules"
	case "commits":
		return "SQLite, 100 commits, default journal"
	case "wal":
		return "SQLite, 100 commits, write-ahead log"
	case "fsync":
		return "100 fsyncs of 4 KiB"
	}
	return kind
}

func inside(r *bench.Report) string {
	x := r.Inside
	if x == nil {
		return ""
	}
	t := newTiming("work", false)
	ratios := table{head: []string{"median ratio of pairs (p25 to p75)", "pairs", "inside / bare host, same file system", "the store / the host's own file system, both bare", "inside / bare host on its own file system"}}
	for _, w := range x.Work {
		name := plain(workText(w.Kind))
		t.add(name+", inside", w.Inside)
		t.add("the same bare, on the store's file system", w.Store)
		t.add("the same bare, on the host's own", w.Host)
		n := "–"
		if w.Sandbox != nil {
			n = count(w.Sandbox.N)
		}
		ratios.add(name, n, spread(w.Sandbox), spread(w.Loop), spread(w.All))
	}
	store := fmt.Sprintf("The store is %s, the data directory on %s; what the former costs without any sandbox is the fourth column, a row of its own as far as marks go.", plain(x.Store), plain(x.DataFS))
	if x.Store == "" {
		store = fmt.Sprintf("Layers lie on the data directory's own file system, %s.", plain(x.DataFS))
	}
	return "One program, by the same interpreter and tools, the same user id and on a workspace of the same file system, timed by its own clock: in a sandbox that may use all processors, " +
		"and on the host, chrooted into the image, with no namespace but one of mounts, no cgroup and no filter. " + store + "\n\n" + ratios.String() + t.String()
}

// spread has three digits after the point: what is looked for is two per cent.
func spread(s *bench.Spread) string {
	if s == nil {
		return "–"
	}
	return fmt.Sprintf("**%.3f** (%.3f to %.3f)", s.Median, s.Low, s.High)
}

const insideLimit = 2.0 // per cent more time than on the bare host

// perCent is how much more than 1 a ratio is.
func perCent(ratio float64) float64 { return (ratio - 1) * 100 }

func insideShifts(r *bench.Report) plot.Shifts {
	s := plot.Shifts{
		ID: "inside", Title: "Work inside, against the bare host", Subtitle: "on the same file system; to the right is slower", Within: insideLimit,
	}
	if r.Inside == nil {
		return s
	}
	s.Caption = caption(r, fmt.Sprintf("%d rounds, inside and outside in turn.", r.Inside.Rounds))
	for _, w := range r.Inside.Work {
		row := plot.Shift{Label: workText(w.Kind)}
		if w.Sandbox == nil {
			row.Missing = "no run worked"
		} else {
			row.Note = fmt.Sprintf("%d pairs", w.Sandbox.N)
			row.Median, row.Low, row.High = perCent(w.Sandbox.Median), perCent(w.Sandbox.Low), perCent(w.Sandbox.High)
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

func insideMarks(r *bench.Report) []mark {
	if r.Inside == nil || len(r.Inside.Work) == 0 {
		return []mark{{what: "work inside, more time than on the bare host", limit: insideLimit, unit: " %"}}
	}
	var all []mark
	for _, w := range r.Inside.Work {
		m := mark{what: "inside, more time than on the bare host: " + plain(workText(w.Kind)), limit: insideLimit, unit: " %"}
		if w.Sandbox != nil {
			m.figure = new(perCent(w.Sandbox.Median))
			m.beside = fmt.Sprintf("the middle half of %d pairs: %s to %s %%", w.Sandbox.N, plus(perCent(w.Sandbox.Low)), plus(perCent(w.Sandbox.High)))
		}
		all = append(all, m)
	}
	return all
}
