// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/test/browser"
)

// Of each page something is measured, in few rounds.
func TestPagesOfTheConsoleAreMeasured(t *testing.T) {
	skiptest.WithShort(t, "a browser is fetched")
	program, images := guarded(t)
	p, err := browser.Get(t.Context(), browser.Dir())
	if e, ok := errors.AsType[browser.Absent](err); ok {
		t.Skip(e.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &session{o: Options{Program: program, Images: images}, dir: t.TempDir(), out: &Report{Missing: map[string]string{}}}
	const sandboxes, tabs = 1200, 3
	c, err := s.pages(t.Context(), p, consoleSizes{visits: 1, sandboxes: sandboxes, rows: 1, seconds: 1, tabs: tabs, rounds: 2, execs: 3})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := (&Report{Console: c}).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
	for name, f := range map[string]*Figures{
		"first paint": c.Paint, "usable": c.Usable, "first paint again": c.PaintAgain, "usable again": c.UsableAgain, "first rows": c.Rows,
		"alone": c.Beside.Alone, "beside tabs": c.Beside.One, "beside windows": c.Beside.All,
	} {
		if f == nil || f.OK == 0 || f.OK != f.N || f.Min <= 0 {
			t.Errorf("%s: the figures are %+v", name, f)
		}
	}
	if c.Usable.Min < c.Paint.Min {
		t.Errorf("the list is usable after %v ms, and the first of it drawn after %v", c.Usable.Min, c.Paint.Min)
	}
	if few := sandboxes / 100; c.Scroll.Frames < few || c.Busy.Frames < few || c.Elements < 100 || c.Elements > 2000 {
		t.Errorf("a list of %d went by in %d and %d frames, with %d elements", sandboxes, c.Scroll.Frames, c.Busy.Frames, c.Elements)
	}
	if o := c.Output; o.Before <= 0 || o.Most < o.Before || o.After <= 0 || o.After > o.Before+8 {
		t.Errorf("the page of much output: %+v", o)
	}
	if b := c.Beside; b.OneRatio.N != 2 || b.AllRatio.N != 2 || b.OneRatio.Median <= 0 || b.AllRatio.Median <= 0 {
		t.Errorf("the ratios are %v and %v", b.OneRatio, b.AllRatio)
	}
}

func TestWithoutABrowserTheConsoleIsLeftOut(t *testing.T) {
	for name, dir := range map[string]string{"no directory": filepath.Join(t.TempDir(), "none"), "an empty one": emptyDir(t)} {
		s := &session{out: &Report{Missing: map[string]string{}}}
		c, err := s.console(t.Context(), dir)
		if why := s.out.Missing["console"]; c != nil || err != nil || !strings.Contains(why, dir) || !strings.Contains(why, "--fetch") {
			t.Errorf("%s: got %+v, %v; missing because %q", name, c, err, why)
		}
	}
}

// emptyDir is one that nobody else may write to.
func emptyDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "browser")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
