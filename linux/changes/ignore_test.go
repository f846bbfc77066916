// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/linux/changes"
)

// log is a file that a program keeps open and writes to.
type log struct {
	t *testing.T
	f *os.File
	s *changes.Source
}

func openLog(t *testing.T, s *changes.Source, path string) *log {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return &log{t, f, s}
}

// write writes and gives how many events that made.
func (l *log) write() int {
	l.t.Helper()
	l.s.Drain()
	_, err := l.f.WriteString("x")
	must(l.t, err)
	return l.s.Drain()
}

// writeUntilIgnored writes until that makes no event any more, and reports whether it came to that.
func (l *log) writeUntilIgnored() bool {
	l.t.Helper()
	for range 10 {
		if l.write() == 0 {
			return true
		}
	}
	return false
}

func TestAFileThatIsWrittenToAllTheTimeCostsNoEvents(t *testing.T) {
	newSource := func(t *testing.T) (*overlay, *changes.Source) {
		o := newOverlay(t, t.TempDir(), map[string]string{"workspace/lower": "of the image"})
		return o, add(t, newGroup(t, changes.Options{}), o)
	}
	check := func(t *testing.T, tr *changes.Tracker, want ...string) {
		t.Helper()
		if diff := cmp.Diff(stop(t, tr), want); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
	}
	t.Run("AndIsListedAllTheSame", func(t *testing.T) {
		for _, name := range []string{"log", "lower"} {
			o, s := newSource(t)
			l := openLog(t, s, o.ws+"/"+name)
			tr := track(t, s)
			if !l.writeUntilIgnored() {
				t.Errorf("each write to %s still makes an event", name)
			}
			must(t, os.Rename(o.ws+"/"+name, o.ws+"/renamed"))
			l.write()
			check(t, tr, "deleted "+name, "created renamed")
		}
	})
	t.Run("EachOfItsNamesThatIsUsedIsListed", func(t *testing.T) {
		o, s := newSource(t)
		l := openLog(t, s, o.ws+"/log")
		must(t, os.Link(o.ws+"/log", o.ws+"/link"))
		tr := track(t, s)
		if l.writeUntilIgnored() {
			t.Error("a write to one of two names makes no event")
		}
		must(t, os.Truncate(o.ws+"/link", 1))
		check(t, tr, "modified link", "modified log")
	})
	t.Run("WhatIsGoneCountsNoMore", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		g := newGroup(t, changes.Options{})
		for range changes.MaxIgnored/changes.MaxIgnoredEach + 1 {
			s := add(t, g, o)
			track(t, s)
			for n := range changes.MaxIgnoredEach {
				if l := openLog(t, s, fmt.Sprintf("%s/log%d", o.ws, n)); !l.writeUntilIgnored() {
					t.Fatal("a file is not ignored after others of sandboxes that are gone")
				}
			}
			must(t, s.Close())
		}
	})
	t.Run("TheNextWindowHearsOfIt", func(t *testing.T) {
		o, s := newSource(t)
		l := openLog(t, s, o.ws+"/log")
		for range 3 {
			tr := track(t, s)
			if !l.writeUntilIgnored() {
				t.Error("each write still makes an event")
			}
			check(t, tr, "modified log")
		}
		check(t, track(t, s), []string{}...)
	})
	t.Run("AWindowThatBeginsMeanwhileHearsOfIt", func(t *testing.T) {
		o, s := newSource(t)
		l := openLog(t, s, o.ws+"/log")
		first := track(t, s)
		if !l.writeUntilIgnored() {
			t.Fatal("each write still makes an event")
		}
		second := track(t, s)
		if l.write() == 0 {
			t.Error("a write that a new window has not heard of makes no event")
		}
		if !l.writeUntilIgnored() {
			t.Error("each write still makes an event though both windows know")
		}
		check(t, first, "modified log")
		check(t, second, "modified log")
	})
	t.Run("AWatchHearsOfEachWrite", func(t *testing.T) {
		o, s := newSource(t)
		l := openLog(t, s, o.ws+"/log")
		tr := track(t, s)
		defer tr.Cancel()
		if !l.writeUntilIgnored() {
			t.Fatal("each write still makes an event")
		}
		w, err := s.Watch("/workspace", true)
		must(t, err)
		defer w.Close()
		for range 10 {
			if l.write() == 0 {
				t.Fatal("a write makes no event though there is a watch")
			}
		}
	})
	t.Run("AnotherSandboxesWindowTakesNothingAway", func(t *testing.T) {
		needOwnIDs(t)
		g := newGroup(t, changes.Options{})
		a, b := newOverlay(t, t.TempDir(), nil), newOverlay(t, t.TempDir(), nil)
		sa, sb := add(t, g, a), add(t, g, b)
		la, lb := openLog(t, sa, a.ws+"/log"), openLog(t, sb, b.ws+"/log")
		ta, tb := track(t, sa), track(t, sb)
		if !la.writeUntilIgnored() || !lb.writeUntilIgnored() {
			t.Fatal("each write still makes an event")
		}
		check(t, ta, "modified log")
		again := track(t, sa)
		la.write()
		lb.write()
		check(t, again, "modified log")
		if !lb.writeUntilIgnored() {
			t.Error("each write still makes an event after another sandbox's window began")
		}
		check(t, tb, "modified log")
	})
	t.Run("OtherChangesOfItAreTold", func(t *testing.T) {
		o, s := newSource(t)
		l := openLog(t, s, o.ws+"/log")
		tr := track(t, s)
		if !l.writeUntilIgnored() {
			t.Fatal("each write still makes an event")
		}
		must(t, os.Link(o.ws+"/log", o.ws+"/link"))
		must(t, os.Remove(o.ws+"/log"))
		l.write()
		check(t, tr, "created link", "deleted log")
	})
}

// What a hostile sandbox can have ignored is bounded, since the next window pays for it.
func TestIgnoredFilesAreBounded(t *testing.T) {
	o := newOverlay(t, t.TempDir(), nil)
	s := add(t, newGroup(t, changes.Options{}), o)
	tr := track(t, s)
	ignored, want := 0, []string{}
	for n := range 40 {
		l := openLog(t, s, fmt.Sprintf("%s/log%02d", o.ws, n))
		if l.writeUntilIgnored() {
			ignored++
		}
		want = append(want, fmt.Sprintf("created log%02d", n))
	}
	if ignored != 16 {
		t.Errorf("%d files are ignored, want 16", ignored)
	}
	if diff := cmp.Diff(stop(t, tr), want); diff != "" {
		t.Errorf("got - want +\n%s", diff)
	}
}
