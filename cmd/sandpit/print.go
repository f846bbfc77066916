// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// format is how a command prints its data.
type format string

const (
	asText format = "text"
	asJSON format = "json"
)

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "FORMAT" }

func (f *format) Set(s string) error {
	switch format(s) {
	case asText, asJSON:
		*f = format(s)
		return nil
	}
	return fmt.Errorf("%q is neither text nor json", s)
}

// formatFlag adds -o.
func formatFlag(c *cobra.Command) *format {
	f := asText
	c.Flags().VarP(&f, "output", "o", "text or json")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return &f
}

// writeJSON prints v for programs.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

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

// listing is how a command lists what it found: a name or id a line, JSON, or a table.
type listing struct {
	quiet  *bool
	format *format
}

// listFlags adds -o, and -q, whose help says what is left of the list with it.
func listFlags(c *cobra.Command, quiet string) listing {
	return listing{quiet: c.Flags().BoolP("quiet", "q", false, quiet), format: formatFlag(c)}
}

// columns are a table of things: their heads, and the cells of one thing.
type columns[T any] struct {
	head []string
	row  func(one T, now time.Time) []string
}

// list prints what was found. Name gives what -q prints of one.
func list[T any](w io.Writer, how listing, found []T, name func(one T) string, in columns[T]) error {
	switch {
	case *how.quiet:
		for _, one := range found {
			if _, err := fmt.Fprintln(w, printable(name(one))); err != nil {
				return err
			}
		}
		return nil
	case *how.format == asJSON:
		return writeJSON(w, found)
	}
	now := time.Now()
	rows := make([][]string, 0, len(found))
	for _, one := range found {
		rows = append(rows, in.row(one, now))
	}
	return table(w, in.head, rows)
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
