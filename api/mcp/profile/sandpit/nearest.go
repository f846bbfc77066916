// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/internal/spelling"
)

// Bounds of the look for what is most like a text.
const (
	nearLines = 60     // of the text that are compared
	nearFile  = 20_000 // lines of the file
	nearShown = 30     // lines of the difference
	nearWide  = 200    // bytes of a line that are compared letter by letter
)

// nearLinesFound is the place in a file that is most like a text.
type nearLinesFound struct {
	first, count int // the first line is 1
	diff         string
}

// nearestLines finds the lines of a file that are most like a text; nil if none is.
func nearestLines(content, what string) *nearLinesFound {
	have, want := splitLines(content), splitLines(what)
	have, want = have[:min(len(have), nearFile)], want[:min(len(want), nearLines)]
	if len(have) == 0 || len(want) == 0 {
		return nil
	}
	plainHave, plainWant := trimmed(have), trimmed(want)
	best, most := -1, 0
	for i := range have {
		score := 0
		for j, w := range plainWant {
			if i+j < len(have) && w != "" && w == plainHave[i+j] {
				score += 1 + min(len(w), 40) // a long line says more than a brace
			}
		}
		if score > most {
			best, most = i, score
		}
	}
	if best < 0 {
		best = likeliest(plainHave, plainWant)
	}
	if best < 0 {
		return nil
	}
	n := &nearLinesFound{first: best + 1, count: min(len(want), len(have)-best)}
	n.diff = difference(want, have[best:best+n.count])
	return n
}

// likeliest finds the line that is nearest in spelling to the first that is not
// empty; below zero if none is near.
func likeliest(have, want []string) int {
	lead := 0
	for lead < len(want) && want[lead] == "" {
		lead++
	}
	if lead == len(want) || len(want[lead]) > nearWide {
		return -1
	}
	w := want[lead]
	best, least := -1, len(w)/3+1
	for i, h := range have {
		if h == "" || len(h) > nearWide || len(h)-len(w) >= least || len(w)-len(h) >= least {
			continue
		}
		if d := spelling.Distance(h, w); d < least {
			best, least = i, d
		}
	}
	return max(best-lead, min(best, 0))
}

func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimSpace(l)
	}
	return out
}

// difference shows line by line what differs.
func difference(want, have []string) string {
	var out []string
	for i := range max(len(want), len(have)) {
		var w, h string
		if i < len(want) {
			w = visible(want[i])
		}
		if i < len(have) {
			h = visible(have[i])
		}
		switch {
		case i < len(want) && i < len(have) && w == h:
			out = append(out, "  "+h)
			continue
		case i < len(want):
			out = append(out, "- "+w)
		}
		if i < len(have) {
			out = append(out, "+ "+h)
		}
	}
	if len(out) > nearShown {
		out = append(out[:nearShown], "…")
	}
	return strings.Join(out, "\n")
}

// visible is a line on which tabs and spaces at the end can be told.
func visible(l string) string {
	l = strings.TrimSuffix(toolset.Clean([]byte(strings.TrimSuffix(strings.TrimSuffix(l, "\n"), "\r"))), "\n")
	body := strings.TrimRight(l, " ")
	l = strings.ReplaceAll(body, "\t", "→") + strings.Repeat("·", len(l)-len(body))
	if toolset.Runes(l) > nearWide {
		l = toolset.FirstRunes(l, nearWide) + "…"
	}
	return l
}
