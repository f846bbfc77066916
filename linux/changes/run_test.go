// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/changes"
)

func TestRun(t *testing.T) {
	run := func(t *testing.T, g *changes.Group) (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- g.Run(ctx) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		}
	}
	wait := func(t *testing.T, what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !ok(); runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("%s did not happen", what)
			}
			unix.Poll(nil, 1)
		}
	}
	t.Run("ItReadsWhileAWindowIsOpenAndTakesIdleWatchesAway", func(t *testing.T) {
		g := newGroup(t, changes.Options{Linger: 20 * time.Millisecond})
		o := newOverlay(t, t.TempDir(), nil)
		s := add(t, g, o)
		end := run(t, g)
		tr := track(t, s)
		want := []string{}
		for i := range 500 {
			write(t, fmt.Sprintf("%s/f%04d", o.ws, i), "x")
			want = append(want, fmt.Sprintf("created f%04d", i))
		}
		if diff := cmp.Diff(stop(t, tr), want); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
		wait(t, "the end of the watch", func() bool { _, watched := s.Open(); return !watched })
		end()
		// Another Run may follow.
		end = run(t, g)
		tr = track(t, s)
		write(t, o.ws+"/again", "x")
		if diff := cmp.Diff(stop(t, tr), []string{"created again"}); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
		end()
		if _, watched := s.Open(); watched {
			t.Error("a watch is left after Run's end, want none")
		}
	})
	t.Run("ClosingTheGroupEndsIt", func(t *testing.T) {
		g := newGroup(t, changes.Options{})
		done := make(chan error)
		go func() { done <- g.Run(t.Context()) }()
		wait(t, "the reader's start", g.Running)
		wantCode(t, g.Run(t.Context()), fault.State)
		must(t, g.Close())
		must(t, <-done)
	})
}
