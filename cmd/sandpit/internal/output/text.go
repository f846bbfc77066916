// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/fault"
)

// Whole is an error with its cause, which is said once.
func Whole(err error) string {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err.Error()
	}
	if e.Err != nil && strings.Contains(e.Message, e.Err.Error()) {
		return e.Message
	}
	return e.Error()
}

// Printable makes one line of text that steers no terminal: names and messages
// may come out of a sandbox.
func Printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Ago tells how long ago t was, as of now.
func Ago(now time.Time, t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	if d := now.Sub(*t); d >= 0 {
		if d < 2*time.Second {
			return "now"
		}
		return Span(d) + " ago"
	}
	return "in " + Span(t.Sub(now))
}

// Span is a duration in one unit.
func Span(d time.Duration) string {
	for _, u := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := int(d / u.length); n >= 2 || n == 1 && u.name != "minute" {
			return Plural(n, u.name)
		}
	}
	return Plural(int(d/time.Second), "second")
}

// Plural is a number of things, of which noun is one.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Bytes is a size for people.
func Bytes(n int64) string {
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

// Text is what p points to, or nothing.
func Text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
