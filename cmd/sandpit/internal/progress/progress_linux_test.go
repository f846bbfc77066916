// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"sandpit.dev/cmd/sandpit/internal/terminaltest"
)

// seen is a terminal's progress with a clock of its own, and what was written since the last look.
type seen struct {
	*Bar
	out bytes.Buffer
	at  time.Time
}

func newSeen(t *testing.T) *seen {
	_, tty := terminaltest.Pair(t)
	s := &seen{at: time.Unix(1000, 0)}
	s.Bar = New(tty)
	s.w, s.now = &s.out, func() time.Time { return s.at }
	return s
}

func (s *seen) after(d time.Duration) { s.at = s.at.Add(d) }

func (s *seen) look() string {
	defer s.out.Reset()
	return strings.ReplaceAll(s.out.String(), "\r\x1b[K", "|")
}

func TestWhatTakesLongTellsItsPace(t *testing.T) {
	const mib = 1 << 20
	t.Run("WithAnEnd", func(t *testing.T) {
		s := newSeen(t)
		if s.Bytes("a", 0, 100*mib) || s.look() != "" {
			t.Error("it is shown at once")
		}
		s.after(900 * time.Millisecond)
		if s.Bytes("a", 9*mib, 100*mib) {
			t.Error("it is shown within a second")
		}
		s.after(1100 * time.Millisecond)
		if got, want := s.Bytes("a", 20*mib, 100*mib), "|a [████░░░░░░░░░░░░░░░░░░░░]  20% 20.0 MiB of 100.0 MiB · 10.0 MiB/s · 8 s left"; !got || s.out.String() == "" {
			t.Error("it is not shown")
		} else if text := s.look(); text != want {
			t.Errorf("got %q, want %q", text, want)
		}
		s.after(8 * time.Second)
		s.Bytes("a", 100*mib, 100*mib)
		if text := s.look(); !strings.HasSuffix(text, "100% 100.0 MiB of 100.0 MiB · 10.0 MiB/s") {
			t.Errorf("at its end: %q", text)
		}
		s.Clear()
		if text := s.look(); text != "|" {
			t.Errorf("it leaves %q", text)
		}
		if s.Bytes("b", mib, 2*mib) || s.Bytes("a", mib, 2*mib) || s.Bytes("a", 0, 0) {
			t.Error("another one has the time of the first")
		}
	})
	t.Run("WithNone", func(t *testing.T) {
		s := newSeen(t)
		s.Count("backup", 0)
		s.after(2 * time.Second)
		s.Count("backup", 4*mib)
		if text := s.look(); text != "|backup 4.0 MiB · 2.0 MiB/s" {
			t.Errorf("got %q", text)
		}
	})
	t.Run("WhereNothingMoves", func(t *testing.T) {
		s := newSeen(t)
		s.Bytes("a", 0, 10)
		s.after(time.Minute)
		s.Bytes("a", 0, 10)
		if text := s.look(); !strings.HasSuffix(text, "  0% 0 B of 10 B") {
			t.Errorf("got %q", text)
		}
	})
	t.Run("NotForPrograms", func(t *testing.T) {
		var out bytes.Buffer
		p := New(&out)
		at := time.Unix(1000, 0)
		p.now = func() time.Time { at = at.Add(time.Hour); return at }
		for range 3 {
			p.Bytes("a", 1, 10)
			p.Count("b", 1)
		}
		if out.Len() > 0 {
			t.Errorf("got %q", out.String())
		}
	})
	for seconds, want := range map[float64]string{0.1: "1 s", 59.9: "59 s", 61: "1 min 1 s", 3600: "1 h 0 min", 5400: "1 h 30 min", 1e12: "days"} {
		if got := remaining(seconds); got != want {
			t.Errorf("%v: got %s, want %s", seconds, got, want)
		}
	}
}
