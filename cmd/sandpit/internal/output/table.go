// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// gap is what stands between two columns.
const gap = 3

// leastColumn is how far a column is cut at most: an id stays whole.
const leastColumn = 16

// Table prints aligned columns; the last is not padded. At a terminal that is too narrow the longest
// columns are cut, with an ellipsis, but never the first, which names what a line is about.
func Table(w io.Writer, head []string, rows [][]string) error {
	return TableWithin(w, head, rows, columnsOf(w))
}

// columnsOf returns how wide the terminal is that is written to; 0: it is none.
func columnsOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || f == nil {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// TableWithin is Table for a terminal that is so wide; 0: for none.
func TableWithin(w io.Writer, head []string, rows [][]string, columns int) error {
	widths := make([]int, len(head))
	all := append([][]string{head}, rows...)
	for _, row := range all {
		for i := range row {
			row[i] = Printable(row[i])
			if row[i] == "" {
				row[i] = "-"
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	if columns > 0 {
		shrink(widths, columns)
		for _, row := range all {
			for i := range row {
				row[i] = cut(row[i], widths[i])
			}
		}
	}
	var b strings.Builder
	for _, row := range all {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shrink makes the widest columns narrower, the first one apart, until all fit or none can give way.
func shrink(widths []int, columns int) {
	over := gap*(len(widths)-1) - columns
	for _, w := range widths {
		over += w
	}
	for ; over > 0; over-- {
		widest := 0
		for i := 1; i < len(widths); i++ {
			if widest == 0 || widths[i] > widths[widest] {
				widest = i
			}
		}
		if widest == 0 || widths[widest] <= leastColumn {
			return
		}
		widths[widest]--
	}
}

// cut returns a text of at most so many characters, with an ellipsis in place of what is left out.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
