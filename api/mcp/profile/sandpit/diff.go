// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"fmt"
	"strings"
)

// diffContext is how many lines stand around a change.
const diffContext = 3

// change is a range of whole lines, and what takes its place.
type change struct {
	first int // index of the first old line
	old   []string
	new   []string
}

// unified returns the change of a text as a unified diff: what was replaced at these
// places, by what.
func unified(content, before, after string, at []int) string {
	lines := splitLines(content)
	changes := changesOf(content, lines, before, after, at)
	var b strings.Builder
	moved := 0 // lines that the changes so far have added
	for i := 0; i < len(changes); {
		j := i + 1 // changes[i:j] are one hunk
		for j < len(changes) && changes[j].first-end(&changes[j-1]) <= 2*diffContext {
			j++
		}
		from := max(0, changes[i].first-diffContext)
		to := min(len(lines), end(&changes[j-1])+diffContext)
		var body strings.Builder
		olds, news, at := to-from, to-from, from
		for _, c := range changes[i:j] {
			writeLines(&body, " ", lines[at:c.first])
			writeLines(&body, "-", c.old)
			writeLines(&body, "+", c.new)
			news += len(c.new) - len(c.old)
			at = end(&c)
		}
		writeLines(&body, " ", lines[at:to])
		fmt.Fprintf(&b, "@@ -%s +%s @@\n%s", span(from, olds), span(from+moved, news), body.String())
		moved += news - olds
		i = j
	}
	return b.String()
}

func end(c *change) int { return c.first + len(c.old) }

// span is a range of lines as hunks have it.
func span(from, n int) string {
	if n == 0 {
		return fmt.Sprintf("%d,0", from)
	}
	if n == 1 {
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, n)
}

func writeLines(b *strings.Builder, mark string, lines []string) {
	for _, l := range lines {
		b.WriteString(mark + strings.TrimSuffix(l, "\n") + "\n")
		if !strings.HasSuffix(l, "\n") {
			b.WriteString("\\ No newline at end of file\n")
		}
	}
}

// splitLines returns the lines with their ends.
func splitLines(s string) []string {
	var out []string
	for l := range strings.Lines(s) {
		out = append(out, l)
	}
	return out
}

// changesOf returns the lines that change, without those at the edges that stay the
// same. Changes that touch are one.
func changesOf(content string, lines []string, before, after string, at []int) []change {
	starts := make([]int, len(lines)+1) // of the lines, in bytes
	for i, l := range lines {
		starts[i+1] = starts[i] + len(l)
	}
	var out []change
	line := 0
	for i := 0; i < len(at); {
		for starts[line+1] <= at[i] {
			line++
		}
		first, pos := line, starts[line]
		var b strings.Builder
		for {
			for i < len(at) && (at[i] < starts[line] || pos == starts[first]) {
				b.WriteString(content[pos:at[i]] + after)
				pos = at[i] + len(before)
				i++
				for starts[line] < pos {
					line++
				}
			}
			b.WriteString(content[pos:starts[line]])
			pos = starts[line]
			if line == len(lines) || b.Len() == 0 || strings.HasSuffix(b.String(), "\n") {
				break
			}
			line++ // the line before it has lost its end
		}
		c := trim(change{first, lines[first:line], splitLines(b.String())})
		switch n := len(out) - 1; {
		case len(c.old) == 0 && len(c.new) == 0:
		case n >= 0 && end(&out[n]) == c.first:
			out[n].old, out[n].new = lines[out[n].first:end(&c)], append(out[n].new, c.new...)
		default:
			out = append(out, c)
		}
	}
	return out
}

// trim takes off what is the same at both ends.
func trim(c change) change {
	for len(c.old) > 0 && len(c.new) > 0 && c.old[0] == c.new[0] {
		c.first, c.old, c.new = c.first+1, c.old[1:], c.new[1:]
	}
	for len(c.old) > 0 && len(c.new) > 0 && c.old[len(c.old)-1] == c.new[len(c.new)-1] {
		c.old, c.new = c.old[:len(c.old)-1], c.new[:len(c.new)-1]
	}
	return c
}
