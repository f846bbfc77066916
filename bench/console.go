// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/test/browser"
	"sandpit.dev/test/browser/cost"
)

// Console is what pages of the web console cost a browser, and what open ones cost a command.
type Console struct {
	// Paint and Usable are visits of the list of sandboxes with nothing in the browser's cache, until the first content is
	// drawn, and until its first row is; the others are visits after that.
	Paint       *Figures `json:"first_paint"`
	Usable      *Figures `json:"usable"`
	PaintAgain  *Figures `json:"first_paint_again"`
	UsableAgain *Figures `json:"usable_again"`

	Sandboxes int         `json:"sandboxes"` // in the list that the next are of
	Rows      *Figures    `json:"first_rows"`
	Elements  int         `json:"elements"` // of its page, the most that were seen
	Scroll    Scrolled    `json:"scroll"`
	Busy      Scrolled    `json:"scroll_busy"` // while Rate events a second come
	Rate      int         `json:"events_per_second"`
	Output    *MuchOutput `json:"output"`
	Beside    *BesideTabs `json:"exec_beside_tabs"`
}

// Scrolled is how a long list went by.
type Scrolled struct {
	Frames int `json:"frames"`
	cost.Tasks
}

// MuchOutput is the page of a command that writes without a pause.
type MuchOutput struct {
	Seconds     int     `json:"seconds"`
	MBPerSecond float64 `json:"mb_per_second"` // that it was asked to write
	cost.Tasks
	Before float64 `json:"heap_before_mb"` // that the page's scripts held before, without garbage
	Most   float64 `json:"heap_most_mb"`   // that they took at most meanwhile, with garbage
	After  float64 `json:"heap_after_mb"`  // that they held at the end, without garbage
}

// consoleSizes are how much of each is done.
type consoleSizes struct {
	visits, sandboxes, rows, seconds, tabs, rounds, execs int
}

// console measures with the browser that is kept in a directory, or gets it there where that is asked for. Where there is none
// the part is missing, with the reason.
func (s *session) console(ctx context.Context, dir string) (*Console, error) {
	find := browser.Kept
	if s.o.Fetch {
		find = browser.Get
	}
	p, err := find(ctx, dir)
	if e, ok := errors.AsType[browser.Absent](err); ok {
		s.out.Missing["console"] = e.Error()
		if !s.o.Fetch {
			s.out.Missing["console"] += "; --fetch unpacks Debian's Chromium there, 100 MB, without installing it"
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.out.Versions["browser"] = p.Version
	n := s.o.pairs()
	return whole(s.pages(ctx, p, consoleSizes{visits: max(5, n/10), sandboxes: 10_000, rows: max(5, n/20), seconds: 10, tabs: 20, rounds: 8, execs: max(10, n/2)}))
}

// pages measures them on a server of their own.
func (s *session) pages(ctx context.Context, p browser.Program, n consoleSizes) (_ *Console, err error) {
	dir, err := s.place("console")
	if err != nil {
		return nil, err
	}
	own := newServer(s.o.Program, dir, s.o.Images)
	if err := own.start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, own.close(context.WithoutCancel(ctx))) }()
	profile := filepath.Join(dir, "profile")
	if err := os.Mkdir(profile, 0o700); err != nil {
		return nil, err
	}
	tab, done, err := p.Open(ctx, profile, nil)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := errors.Join(cost.Watch(tab), cost.SignIn(tab, own.url, own.token)); err != nil {
		return nil, err
	}
	o := &ours{client: own.client, pid: own.cmd.Process.Pid}
	out := new(Console)
	err = o.with(ctx, v1.CreateSandbox{}, func(ref string) error {
		s.tell("the list of sandboxes")
		if err := out.open(tab, own.url, n.visits); err != nil {
			return err
		}
		s.tell(fmt.Sprintf("the list of %d", n.sandboxes))
		if err := out.crowd(ctx, tab, own, ref, n); err != nil {
			return err
		}
		s.tell("much output")
		if out.Output, err = o.output(ctx, tab, own.url, ref, n.seconds); err != nil {
			return err
		}
		s.tell(fmt.Sprintf("commands beside %d tabs", n.tabs))
		out.Beside, err = o.besideTabs(ctx, tab, own, ref, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// open times visits of the list, fresh ones and others in turn.
func (c *Console) open(tab context.Context, server string, n int) error {
	var paint, usable [2]series
	for i := range n + 1 {
		for again := range 2 {
			at, err := cost.OpenList(tab, server, again == 0)
			if err != nil {
				return err
			}
			if i > 0 { // the first one is a warm-up
				paint[again].add(at.Paint, nil)
				usable[again].add(at.Usable, nil)
			}
		}
	}
	c.Paint, c.PaintAgain, c.Usable, c.UsableAgain = paint[0].figures(), paint[1].figures(), usable[0].figures(), usable[1].figures()
	return nil
}

const eventRate = 50 // a second

// crowd measures a list of many.
func (c *Console) crowd(ctx, tab context.Context, own *server, ref string, n consoleSizes) (err error) {
	crowd, err := cost.NewCrowd(own.url, n.sandboxes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crowd.Close()) }()
	if err := cost.SignIn(tab, crowd.URL, own.token); err != nil {
		return err
	}
	var rows series
	for i := range n.rows + 1 {
		at, err := cost.OpenList(tab, crowd.URL, false)
		if err != nil {
			return err
		}
		if i > 0 {
			rows.add(at.Usable-at.Data, nil)
		}
	}
	c.Sandboxes, c.Rows, c.Rate = n.sandboxes, rows.figures(), eventRate
	if err := cost.Until(tab, fmt.Sprintf("document.querySelector('.filters [role=status]')?.innerText === '%d of %[1]d'", n.sandboxes)); err != nil {
		return err
	}
	if err := c.Scroll.by(tab, c); err != nil {
		return err
	}
	return own.during(ctx, ref, eventRate, func() error { return c.Busy.by(tab, c) })
}

// by goes through the page of a tab.
func (s *Scrolled) by(tab context.Context, c *Console) (err error) {
	if s.Frames, s.Tasks, err = cost.Scroll(tab); err != nil {
		return err
	}
	n, err := cost.Elements(tab)
	c.Elements = max(c.Elements, n)
	return err
}

// during changes a sandbox so many times a second while do runs, each of which is an event.
func (s *server) during(ctx context.Context, ref string, rate int, do func() error) error {
	changing, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.change(changing, ref, rate) }()
	err := do()
	stop()
	if changed := <-ended; err == nil && ctx.Err() == nil {
		err = changed
	}
	return err
}

// change changes a sandbox's label until ctx is done, which is no error.
func (s *server) change(ctx context.Context, ref string, rate int) error {
	every := time.NewTicker(time.Second / time.Duration(rate))
	defer every.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		if _, err := s.client.Update(ctx, ref, v1.UpdateSandbox{Metadata: map[string]string{"n": fmt.Sprint(i)}}); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

const outputRate = 10.0 // MB a second: for 13 s, then the log of a process is full

// output follows a command that writes 10 MB a second in the page of a tab.
func (o *ours) output(ctx, tab context.Context, server, ref string, seconds int) (*MuchOutput, error) {
	got, err := cost.FollowOutput(tab, server, ref, func() (string, error) {
		p, err := o.client.StartProcess(ctx, ref, v1.StartProcess{Argv: cost.Writer(seconds), MaxOutputBytes: new(int64(64 << 20))})
		if err != nil {
			return "", err
		}
		return p.ID(), nil
	})
	if err != nil {
		return nil, err
	}
	const mb = 1e6
	return &MuchOutput{Seconds: seconds, MBPerSecond: outputRate, Tasks: got.Tasks, Before: got.Before / mb, Most: got.Most / mb, After: got.After / mb}, nil
}

func (c *Console) rows(row func(name string, f *Figures)) {
	if c == nil {
		return
	}
	row("console: first paint, nothing cached", c.Paint)
	row("its list is usable", c.Usable)
	row("first paint, visited before", c.PaintAgain)
	row("its list is usable", c.UsableAgain)
	row(fmt.Sprintf("first rows of %d, after their data", c.Sandboxes), c.Rows)
	if b := c.Beside; b != nil {
		row("command, none of its pages open", b.Alone)
		row(fmt.Sprintf("beside %d tabs, one of them seen", b.Tabs), b.One)
		row(fmt.Sprintf("beside %d windows, all seen", b.Tabs), b.All)
	}
}

func (c *Console) lines(say func(format string, args ...any)) {
	if c == nil {
		return
	}
	say("console: a list of %d has %d elements; scrolling it, %s of 50 ms or more in %d frames, and %s in %d while %d events a second come",
		c.Sandboxes, c.Elements, tasks(c.Scroll.Tasks), c.Scroll.Frames, tasks(c.Busy.Tasks), c.Busy.Frames, c.Rate)
	if o := c.Output; o != nil {
		say("%.0f MB/s of output for %d s: %s of 50 ms or more; the page's heap %.1f MB before, %.1f at most, %.1f at the end", o.MBPerSecond, o.Seconds, tasks(o.Tasks), o.Before, o.Most, o.After)
	}
	if b := c.Beside; b != nil {
		say("beside %d tabs a command takes %v times as long at p50, and %v times with all of them seen", b.Tabs, b.OneRatio, b.AllRatio)
	}
}

// tasks says how many there were.
func tasks(t cost.Tasks) string {
	if t.Long == 0 {
		return "no task"
	}
	return fmt.Sprintf("%d tasks, the longest %.0f ms,", t.Long, t.Longest)
}
