// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/changes"
)

// TestTheCostDoesNotGrowWithTheTree counts what an answer costs by what it
// asks: the same calls for ten files around the changed one as for ten thousand.
func TestTheCostDoesNotGrowWithTheTree(t *testing.T) {
	cost := func(files int) float64 {
		o := newOverlay(t, t.TempDir(), nil)
		grow(t, o, files)
		s := add(t, newGroup(t, changes.Options{}), o)
		return testing.AllocsPerRun(20, func() {
			tr := track(t, s)
			write(t, o.ws+"/changed", "x")
			stop(t, tr)
		})
	}
	small, large := cost(10), cost(10_000)
	if large > small+5 {
		t.Errorf("got %v allocations with 10,000 files and %v with 10, want the same", large, small)
	}
}

func grow(t testing.TB, o *overlay, files int) {
	for i := range files {
		if i%20 == 0 {
			must(t, os.Mkdir(fmt.Sprintf("%s/d%d", o.ws, i/20), 0o755))
		}
		fd, err := unix.Open(fmt.Sprintf("%s/d%d/f%d", o.ws, i/20, i), unix.O_CREAT|unix.O_WRONLY, 0o644)
		must(t, err)
		unix.Close(fd)
	}
}

// BenchmarkWindow is Track and Stop around nothing and around one change, in
// trees of three sizes, with the reader running (the watch lingers) and without
// (each window sets and removes it).
func BenchmarkWindow(b *testing.B) {
	for _, files := range []int{10, 10_000, 200_000} {
		o := newOverlay(b, b.TempDir(), nil)
		grow(b, o, files)
		for _, reader := range []bool{true, false} {
			g := newGroup(b, changes.Options{})
			s := add(b, g, o)
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error, 1)
			if reader {
				go func() { done <- g.Run(ctx) }()
			} else {
				done <- nil
			}
			name := fmt.Sprintf("files=%d/reader=%v/", files, reader)
			b.Run(name+"changes=0", func(b *testing.B) {
				for b.Loop() {
					stop(b, track(b, s))
				}
			})
			b.Run(name+"changes=1", func(b *testing.B) {
				for b.Loop() {
					tr := track(b, s)
					must(b, unix.Chmod(o.ws+"/d0/f0", 0o600))
					stop(b, tr)
				}
			})
			b.Run(name+"onlyTheChange", func(b *testing.B) {
				for b.Loop() {
					must(b, unix.Chmod(o.ws+"/d0/f0", 0o600))
				}
			})
			cancel()
			must(b, <-done)
			must(b, s.Close())
		}
	}
}

// BenchmarkEvents is what the reader does with each event, of files that are
// made, written and removed; ns/event is its own time alone.
func BenchmarkEvents(b *testing.B) {
	o := newOverlay(b, b.TempDir(), nil)
	s := add(b, newGroup(b, changes.Options{}), o)
	events, spent := 0, time.Duration(0)
	for i := 0; b.Loop(); i++ {
		tr := track(b, s)
		for j := range 200 {
			name := fmt.Sprintf("%s/%d-%d", o.ws, i, j)
			write(b, name, "x")
			must(b, unix.Unlink(name))
		}
		begin := time.Now()
		events += s.Drain()
		spent += time.Since(begin)
		tr.Cancel()
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(events), "ns/event")
}

// BenchmarkWork is the sandbox's own work of making, writing and closing a
// file, unwatched and watched: in memory, so that no disk is measured.
func BenchmarkWork(b *testing.B) {
	for _, watched := range []bool{false, true} {
		b.Run(fmt.Sprintf("watched=%v", watched), func(b *testing.B) {
			dir, err := os.MkdirTemp("/dev/shm", "changes")
			must(b, err)
			b.Cleanup(func() { os.RemoveAll(dir) })
			o := newOverlay(b, dir, nil)
			g := newGroup(b, changes.Options{})
			s := add(b, g, o)
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- g.Run(ctx) }()
			if watched {
				defer track(b, s).Cancel()
			}
			for i := 0; b.Loop(); i++ {
				fd, err := unix.Open(fmt.Sprintf("%s/f%d", o.ws, i%20000), unix.O_CREAT|unix.O_WRONLY, 0o644)
				must(b, err)
				unix.Write(fd, []byte("0123456789"))
				unix.Close(fd)
			}
			cancel()
			must(b, <-done)
		})
	}
}

// FuzzParse: whatever the bytes are, parsing ends without a panic, and what it
// gives is within them.
func FuzzParse(f *testing.F) {
	f.Add([]byte(strings.Repeat("\x00", 64)))
	f.Fuzz(func(t *testing.T, b []byte) { changes.ParseAll(b) })
}
