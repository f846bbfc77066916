// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
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
