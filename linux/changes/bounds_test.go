// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/changes"
)

func TestBounds(t *testing.T) {
	t.Run("AnOverflowOfTheKernelsQueueMakesEveryOpenWindowIncomplete", func(t *testing.T) {
		needOwnIDs(t)
		skiptest.WithoutRoot(t, "it watches a file system by fanotify")
		g, err := changes.OpenLimited(changes.Options{})
		must(t, err)
		defer g.Close()
		loud, quiet := newOverlay(t, t.TempDir(), nil), newOverlay(t, t.TempDir(), nil)
		ls, qs := add(t, g, loud), add(t, g, quiet)
		lt, qt := track(t, ls), track(t, qs)
		limit := kernelNumber(t, "/proc/sys/fs/fanotify/max_queued_events")
		for i := range limit + 1 {
			must(t, unix.Mknod(fmt.Sprintf("%s/f%d", loud.ws, i), unix.S_IFREG|0o644, 0))
		}
		for _, tr := range []*changes.Tracker{lt, qt} {
			if c, err := tr.Stop(t.Context()); err != nil || c.Complete {
				t.Errorf("got Complete=%v, %v, want an answer that is not complete", c.Complete, err)
			}
		}
		// The next window is whole again.
		tr := track(t, qs)
		write(t, quiet.ws+"/f", "x")
		if diff := cmp.Diff(stop(t, tr), []string{"created f"}); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
	})
	t.Run("WhyAnAnswerIsNotCompleteIsLogged", func(t *testing.T) {
		var log bytes.Buffer
		o := newOverlay(t, t.TempDir(), nil)
		tr := track(t, add(t, newGroup(t, changes.Options{
			Memory: 16 << 10,
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}), o))
		for i := range 100 {
			write(t, fmt.Sprintf("%s/f%d", o.ws, i), "")
		}
		c, err := tr.Stop(t.Context())
		must(t, err)
		if said := log.String(); c.Complete || !strings.Contains(said, `dir=/workspace reason="the window is full"`) {
			t.Errorf("got Complete=%v and the log %q, want false and the reason", c.Complete, said)
		}
	})
	t.Run("AtMostMaxFilesAreListed", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		tr := track(t, add(t, newGroup(t, changes.Options{MaxFiles: 3}), o))
		for i := range 10 {
			write(t, fmt.Sprintf("%s/f%d", o.ws, i), "x")
		}
		c, err := tr.Stop(t.Context())
		must(t, err)
		if diff := cmp.Diff(lines(c), []string{"created f0", "created f1", "created f2"}); diff != "" || !c.Complete || !c.Truncated || c.Total != 10 {
			t.Errorf("got Complete=%v Truncated=%v Total=%d, want true, true and 10; got - want +\n%s", c.Complete, c.Truncated, c.Total, diff)
		}
	})
	t.Run("AMovedDirectoryIsWalkedToABound", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		must(t, os.Mkdir(o.ws+"/d", 0o755))
		for i := range 100 {
			write(t, fmt.Sprintf("%s/d/f%d", o.ws, i), "x")
		}
		deep := o.ws + "/deep" + strings.Repeat("/x", 100)
		must(t, os.MkdirAll(deep, 0o755))
		s := add(t, newGroup(t, changes.Options{MaxFiles: 10}), o)
		for _, name := range []string{"d", "deep"} {
			tr := track(t, s)
			must(t, unix.Rename(o.ws+"/"+name, o.ws+"/e"+name))
			c, err := tr.Stop(t.Context())
			must(t, err)
			if len(c.Files) != 10 || !c.Truncated {
				t.Errorf("got %d files, Truncated=%v, want 10 and true", len(c.Files), c.Truncated)
			}
		}
	})
	t.Run("AWindowThatOutgrowsItsMemoryIsIncomplete", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		tr := track(t, add(t, newGroup(t, changes.Options{Memory: 256 << 10}), o))
		for i := range 2000 {
			write(t, fmt.Sprintf("%s/f%d%s", o.ws, i, strings.Repeat("n", 200)), "")
		}
		c, err := tr.Stop(t.Context())
		must(t, err)
		if c.Complete || !c.Truncated || len(c.Files) == 0 {
			t.Errorf("got %d files, Complete=%v, Truncated=%v, want some, false and true", len(c.Files), c.Complete, c.Truncated)
		}
	})
	t.Run("ChangesOutsideDoNotCrowdOutThoseInside", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		s := add(t, newGroup(t, changes.Options{Memory: 256 << 10}), o)
		tr := track(t, s)
		write(t, o.ws+"/first", "x")
		for i := range 50 {
			must(t, os.Mkdir(fmt.Sprintf("%s/tmp/d%d", o.top, i), 0o755))
			for j := range 100 {
				write(t, fmt.Sprintf("%s/tmp/d%d/f%d", o.top, i, j), "")
			}
		}
		write(t, o.ws+"/last", "x")
		if diff := cmp.Diff(stop(t, tr), []string{"created first", "created last"}); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
	})
	t.Run("ADirectoryThrownAwayAndMovedInIsIncomplete", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		s := add(t, newGroup(t, changes.Options{Memory: 256 << 10}), o)
		tr := track(t, s)
		must(t, os.Mkdir(o.top+"/tmp/d", 0o755))
		for j := range 2000 {
			write(t, fmt.Sprintf("%s/tmp/d/f%d", o.top, j), "")
		}
		s.Drain()
		must(t, unix.Rename(o.top+"/tmp/d", o.ws+"/d"))
		c, err := tr.Stop(t.Context())
		must(t, err)
		if len(c.Files) != 1000 || c.Files[0].Path != "d" || c.Files[1].Action != changes.Created || c.Complete {
			t.Errorf("got %d files, Complete=%v, want the moved directory's first 1000 and false", len(c.Files), c.Complete)
		}
	})
	t.Run("APathTooLongToHaveANameIsIncomplete", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		tr := track(t, add(t, newGroup(t, changes.Options{}), o))
		fd, err := unix.Open(o.ws, unix.O_PATH|unix.O_DIRECTORY, 0)
		must(t, err)
		for range 20 {
			name := strings.Repeat("d", 250)
			must(t, unix.Mkdirat(fd, name, 0o755))
			next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY, 0)
			must(t, err)
			unix.Close(fd)
			fd = next
		}
		unix.Close(fd)
		c, err := tr.Stop(t.Context())
		must(t, err)
		if c.Complete || len(c.Files) == 0 {
			t.Errorf("got %d files, Complete=%v, want those with a path, and false", len(c.Files), c.Complete)
		}
	})
	t.Run("AWriterThatNeverEndsDoesNotHoldUpStop", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		s := add(t, newGroup(t, changes.Options{}), o)
		tr := track(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("%s/f%d", o.ws, i%5000)
				os.WriteFile(name, nil, 0o644)
				os.Rename(name, name+"x")
				os.Remove(name + "x")
			}
		})
		write(t, o.ws+"/mine", "x")
		c, err := tr.Stop(t.Context())
		must(t, err)
		if !strings.Contains(strings.Join(lines(c), "\n"), "created mine") {
			t.Errorf("got %v, want the file that was written before", lines(c))
		}
	})
}

func kernelNumber(t testing.TB, path string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Clean(path))
	must(t, err)
	var n int
	_, err = fmt.Sscan(string(b), &n)
	must(t, err)
	return n
}
