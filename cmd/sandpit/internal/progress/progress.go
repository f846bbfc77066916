// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package progress shows how far something is.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/terminal"
)

// Bar shows how far something is: a bar that moves on a terminal, else a
// line whenever there is news. It is safe for concurrent use: a request's body
// may be read on after its answer has come.
type Bar struct {
	w   io.Writer
	tty *os.File // nil: lines
	now func() time.Time

	mu    sync.Mutex // guards what is below
	one   pace       // of what has an end
	all   pace       // of what has none
	said  string
	tenth int
	drawn bool
	last  time.Time
}

// redraw is how often a bar moves at most.
const redraw = 100 * time.Millisecond

// New returns a bar on w.
func New(w io.Writer) *Bar {
	p := &Bar{w: w, tenth: -1, now: time.Now}
	p.tty, _ = terminal.Of(w)
	return p
}

// Show shows that part (0 to 1) of what is named is done.
func (p *Bar) Show(name, text string, part float64) {
	text = output.Printable(text)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tty == nil {
		if tenth := int(part * 10); text != p.said || tenth > p.tenth {
			p.said, p.tenth = text, tenth
			fmt.Fprintf(p.w, "%s: %3.0f%% %s\n", name, part*100, text)
		}
		return
	}
	now := p.now()
	if part < 1 && now.Sub(p.last) < redraw {
		return
	}
	p.last = now
	const width = 24
	full := min(max(int(part*width), 0), width)
	line := fmt.Sprintf("%s [%s%s] %3.0f%% %s", name, strings.Repeat("█", full), strings.Repeat("░", width-full), part*100, text)
	fmt.Fprint(p.w, "\r\x1b[K"+p.fit(line))
	p.drawn = true
}

// quiet is how long something may take before it is worth a word.
const quiet = time.Second

// Bytes shows on a terminal how many of size bytes are done, how fast, and how long the rest takes.
// It reports whether it did: nothing is shown in the time quiet.
func (p *Bar) Bytes(name string, done, size int64) bool {
	if p.tty == nil || size <= 0 {
		return false
	}
	p.mu.Lock()
	took, rate := p.one.step(name, done, p.now())
	p.mu.Unlock()
	if took < quiet {
		return false
	}
	text := fmt.Sprintf("%s of %s", output.Bytes(done), output.Bytes(size))
	if rate >= 1 {
		text += fmt.Sprintf(" · %s/s", output.Bytes(int64(rate)))
		if left := max(size-done, 0); left > 0 {
			text += " · " + remaining(float64(left)/rate) + " left"
		}
	}
	p.Show(name, text, float64(done)/float64(size))
	return true
}

// Count shows on a terminal how many bytes are done, and how fast, where the size is not known.
func (p *Bar) Count(name string, done int64) {
	if p.tty == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	took, rate := p.all.step(name, done, now)
	if took < quiet || now.Sub(p.last) < redraw {
		return
	}
	text := output.Bytes(done)
	if rate >= 1 {
		text += fmt.Sprintf(" · %s/s", output.Bytes(int64(rate)))
	}
	p.last, p.drawn = now, true
	fmt.Fprint(p.w, "\r\x1b[K"+p.fit(output.Printable(name+" "+text)))
}

// pace is how fast something goes on.
type pace struct {
	name        string
	begun       time.Time
	first, done int64
}

// step takes that so many bytes of what is named are done, and returns how long it takes so far and
// the bytes a second. What has another name, or fewer bytes than before, begins anew.
func (p *pace) step(name string, done int64, now time.Time) (took time.Duration, rate float64) {
	if name != p.name || done < p.done || p.begun.IsZero() {
		*p = pace{name: name, begun: now, first: done}
	}
	p.done = done
	if took = now.Sub(p.begun); took > 0 {
		rate = float64(done-p.first) / took.Seconds()
	}
	return took, rate
}

// remaining is a time that is left, for people: a guess, so that the parts of a minute are left out
// of hours.
func remaining(seconds float64) string {
	const most = 100 * time.Hour
	d := most
	if seconds < most.Seconds() {
		d = time.Duration(seconds * float64(time.Second))
	}
	switch {
	case d >= most:
		return "days"
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d s", max(int(d.Seconds()), 1))
}

// fit cuts a line to the terminal's width.
func (p *Bar) fit(line string) string {
	if cols, _, err := term.GetSize(int(p.tty.Fd())); err == nil && cols > 1 {
		if r := []rune(line); len(r) >= cols {
			return string(r[:cols-1])
		}
	}
	return line
}

// Clear takes the bar away.
func (p *Bar) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}
