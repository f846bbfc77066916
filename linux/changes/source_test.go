// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/changes"
)

func wantCode(t testing.TB, err error, want fault.Code) {
	t.Helper()
	if got := fault.Of(err); got != want {
		t.Errorf("got error %v of code %q, want code %q", err, got, want)
	}
}

func TestAdd(t *testing.T) {
	g := newGroup(t, changes.Options{})
	t.Run("AnOverlayWithoutFileHandlesIsUnsupported", func(t *testing.T) {
		_, err := g.Add(newOverlay(t, t.TempDir(), nil, "index=off", "nfs_export=off").mount, nil)
		wantCode(t, err, fault.Unsupported)
	})
	t.Run("AnotherFileSystemIsUnsupported", func(t *testing.T) {
		f, err := os.Open(t.TempDir())
		must(t, err)
		defer f.Close()
		_, err = g.Add(f, nil)
		wantCode(t, err, fault.Unsupported)
	})
	t.Run("AnOverlayTwiceExists", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		add(t, g, o)
		_, err := g.Add(o.mount, nil)
		wantCode(t, err, fault.Exists)
	})
	t.Run("ACopiedUpperIsAConflictUntilItsUUIDIsRemoved", func(t *testing.T) {
		needOwnIDs(t)
		a := newOverlay(t, t.TempDir(), nil)
		add(t, g, a)
		dir := t.TempDir()
		out, err := exec.Command("cp", "-a", "--", a.dir+"/upper", dir+"/upper").CombinedOutput()
		if err != nil {
			t.Fatalf("cp: %v\n%s", err, out)
		}
		// Overlay wants the same lower under an upper that was used before.
		must(t, os.Symlink(a.dir+"/lower", dir+"/lower"))
		b := newOverlay(t, dir, nil)
		_, err = g.Add(b.mount, nil)
		wantCode(t, err, fault.Conflict)
		b.mount.Close()
		must(t, unix.Removexattr(dir+"/upper", "trusted.overlay.uuid"))
		must(t, os.RemoveAll(dir+"/work"))
		add(t, g, newOverlay(t, dir, nil))
	})
	t.Run("AClosedSourceMayBeAddedAgain", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		s, err := g.Add(o.mount, nil)
		must(t, err)
		must(t, s.Close())
		must(t, s.Close())
		add(t, g, o)
	})
	t.Run("AClosedGroupTakesNothing", func(t *testing.T) {
		g := newGroup(t, changes.Options{})
		must(t, g.Close())
		must(t, g.Close())
		_, err := g.Add(newOverlay(t, t.TempDir(), nil).mount, nil)
		wantCode(t, err, fault.State)
	})
}

func TestTrack(t *testing.T) {
	o := newOverlay(t, t.TempDir(), nil)
	s := add(t, newGroup(t, changes.Options{}), o)
	t.Run("ARelativeDirectoryIsInvalid", func(t *testing.T) {
		for _, dir := range []string{"", "workspace", "/a\x00b", "/" + strings.Repeat("x", 5000)} {
			_, err := s.Track(dir)
			wantCode(t, err, fault.Invalid)
		}
	})
	t.Run("WhatWasBeforeIsNotInTheWindow", func(t *testing.T) {
		first := track(t, s)
		write(t, o.ws+"/early", "x")
		second := track(t, s)
		write(t, o.ws+"/late", "x")
		if diff := cmp.Diff(stop(t, second), []string{"created late"}); diff != "" {
			t.Errorf("second: got - want +\n%s", diff)
		}
		if diff := cmp.Diff(stop(t, first), []string{"created early", "created late"}); diff != "" {
			t.Errorf("first: got - want +\n%s", diff)
		}
	})
	t.Run("TheRootMayBeTracked", func(t *testing.T) {
		tr, err := s.Track("/")
		must(t, err)
		write(t, o.top+"/tmp/f", "x")
		write(t, o.top+"/g", "x")
		if diff := cmp.Diff(stop(t, tr), []string{"created g", "created tmp/f"}); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
	})
	t.Run("TooManyWindowsAreRefused", func(t *testing.T) {
		for range 64 {
			defer track(t, s).Cancel()
		}
		_, err := s.Track("/workspace")
		wantCode(t, err, fault.Exhausted)
	})
	t.Run("AWindowEndsOnce", func(t *testing.T) {
		tr := track(t, s)
		stop(t, tr)
		_, err := tr.Stop(t.Context())
		wantCode(t, err, fault.State)
		tr.Cancel()
	})
	t.Run("ADoneContextEndsTheWindowToo", func(t *testing.T) {
		tr := track(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := tr.Stop(ctx)
		wantCode(t, err, fault.Canceled)
		if n, watched := s.Open(); n != 0 || watched {
			t.Errorf("got %d windows, watched %v, want none", n, watched)
		}
	})
	t.Run("ASourceClosedMeanwhileIsIncomplete", func(t *testing.T) {
		o := newOverlay(t, t.TempDir(), nil)
		s := add(t, newGroup(t, changes.Options{}), o)
		tr := track(t, s)
		write(t, o.ws+"/f", "x")
		must(t, s.Close())
		if c, err := tr.Stop(t.Context()); err != nil || c.Complete {
			t.Errorf("got %+v, %v, want an answer that is not complete", c, err)
		}
		_, err := s.Track("/workspace")
		wantCode(t, err, fault.State)
	})
}
