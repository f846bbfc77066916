// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// table prints aligned columns; the last is not padded.
func table(w io.Writer, head []string, rows [][]string) error {
	widths := make([]int, len(head))
	all := append([][]string{head}, rows...)
	for _, row := range all {
		for i := range row {
			row[i] = printable(row[i])
			if row[i] == "" {
				row[i] = "-"
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	var b strings.Builder
	for _, row := range all {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+3))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ago tells how long ago t was, as of now.
func ago(now time.Time, t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	if d := now.Sub(*t); d >= 0 {
		if d < 2*time.Second {
			return "now"
		}
		return span(d) + " ago"
	}
	return "in " + span(t.Sub(now))
}

// span is a duration in one unit.
func span(d time.Duration) string {
	for _, u := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := int(d / u.length); n >= 2 || n == 1 && u.name != "minute" {
			return plural(n, u.name)
		}
	}
	return plural(int(d/time.Second), "second")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// bytesOf is a size for people.
func bytesOf(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// listing is how a command lists what it found: a name or id a line, data, by a template, or a table.
type listing struct {
	quiet  *bool
	format *format
	by     *templateFlag
}

// listFlags adds -o, --format, and -q, whose help says what is left of the list with it.
func listFlags(c *cobra.Command, quiet string) listing {
	l := listing{
		quiet:  c.Flags().BoolP("quiet", "q", false, quiet),
		format: formatsFlag(c, asText, asText, asWide, asName, asJSON, asYAML),
		by:     new(templateFlag),
	}
	c.Flags().Var(l.by, "format", "print each with this template, such as '{{.id}}'; its fields are those of -o json")
	return l
}

// columns are a table of things: their heads, and the cells of one thing.
type columns[T any] struct {
	head []string
	row  func(one T, now time.Time) []string

	// With -o wide these follow; nil: none.
	wideHead []string
	wideRow  func(one T, now time.Time) []string

	called func(one T) string // what -o name prints of one; nil: what -q does
}

// list prints what was found. Name gives what -q prints of one.
func list[T any](w io.Writer, how listing, found []T, name func(one T) string, in columns[T]) error {
	if !*how.quiet && *how.format == asName && in.called != nil {
		name = in.called
	}
	switch {
	case *how.quiet || how.by.t == nil && *how.format == asName:
		for _, one := range found {
			if _, err := fmt.Fprintln(w, printable(name(one))); err != nil {
				return err
			}
		}
		return nil
	case how.by.t != nil:
		for _, one := range found {
			if err := how.by.write(w, one); err != nil {
				return err
			}
		}
		return nil
	case *how.format == asJSON || *how.format == asYAML:
		return writeData(w, *how.format, found)
	}
	now := time.Now()
	head, wide := in.head, *how.format == asWide && in.wideRow != nil
	if wide {
		head = slices.Concat(head, in.wideHead)
	}
	rows := make([][]string, 0, len(found))
	for _, one := range found {
		row := in.row(one, now)
		if wide {
			row = append(row, in.wideRow(one, now)...)
		}
		rows = append(rows, row)
	}
	return table(w, head, rows)
}

// collect returns all of a list that comes page by page; never nil, for JSON's sake.
func collect[T any](pages iter.Seq2[T, error]) ([]T, error) {
	found := []T{}
	for one, err := range pages {
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}
