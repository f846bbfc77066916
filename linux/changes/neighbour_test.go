// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/linux/changes"
)

// neighbours are two sandboxes of one group.
func neighbours(t *testing.T, opts changes.Options) (g *changes.Group, loud, quiet *overlay, ls, qs *changes.Source) {
	t.Helper()
	needOwnIDs(t)
	g = newGroup(t, opts)
	loud, quiet = newOverlay(t, t.TempDir(), nil), newOverlay(t, t.TempDir(), nil)
	return g, loud, quiet, add(t, g, loud), add(t, g, quiet)
}

// storm makes files, each one event.
func storm(t *testing.T, o *overlay, n int) {
	t.Helper()
	for range n {
		o.made++
		must(t, unix.Mknod(fmt.Sprintf("%s/storm%d", o.ws, o.made), unix.S_IFREG|0o644, 0))
	}
}

// queued is how many events wait in the kernel.
func queued(t *testing.T, g *changes.Group) int {
	t.Helper()
	n, err := unix.IoctlGetInt(g.Queue(), unix.TIOCINQ)
	must(t, err)
	return n / unix.FAN_EVENT_METADATA_LEN
}

func running(t *testing.T, g *changes.Group) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-done)
	})
	eventually(t, "the reader runs", g.Running)
}

// TestACommandBooksNothingOfAnotherSandbox: with a long queue of another's events and its
// watches and windows open, a command's begin and end do none of the work for those.
func TestACommandBooksNothingOfAnotherSandbox(t *testing.T) {
	_, loud, quiet, ls, qs := neighbours(t, changes.Options{})
	var watches []*changes.Watch
	for range 32 {
		watches = append(watches, watch(t, ls, "/workspace", true))
	}
	storm(t, loud, 5000)
	tr := track(t, qs)
	write(t, quiet.ws+"/mine", "x")
	storm(t, loud, 1000)
	if diff := cmp.Diff(stop(t, tr), []string{"created mine"}); diff != "" {
		t.Errorf("got - want +\n%s", diff)
	}
	for n, w := range watches {
		if got := w.Booked(); got != 0 {
			t.Fatalf("the other's command booked %d events in watch %d, want none", got, n)
		}
	}
	// They are not lost.
	for _, w := range watches {
		if got := next(t, ls, w); len(got) != 6000 {
			t.Fatalf("a watch got %d events, want 6000", len(got))
		}
	}
}

// TestAWatchTakesWhatIsBooked: who takes events has none read, however often.
func TestAWatchTakesWhatIsBooked(t *testing.T) {
	g, loud, quiet, ls, qs := neighbours(t, changes.Options{})
	w := watch(t, ls, "/workspace", true)
	tr := track(t, qs)
	storm(t, loud, 1)
	ls.Drain()
	storm(t, quiet, 100)
	before := queued(t, g)
	for range 3 {
		if _, err := w.Take(); err != nil {
			t.Fatal(err)
		}
	}
	if got := queued(t, g); got != before || got < 100 {
		t.Errorf("%d events are queued after three takes, want the %d of before", got, before)
	}
	if got := stop(t, tr); len(got) != 100 {
		t.Errorf("got %d changes, want 100", len(got))
	}
}

// TestNoSandboxWaitsForAnothersLock holds a sandbox in the middle of its booking, as a disk
// that does not answer would, and goes through the life of another.
func TestNoSandboxWaitsForAnothersLock(t *testing.T) {
	for _, reader := range []bool{true, false} {
		t.Run(fmt.Sprintf("Reader=%v", reader), func(t *testing.T) {
			g, loud, quiet, ls, qs := neighbours(t, changes.Options{Linger: 10 * time.Millisecond})
			if reader {
				running(t, g)
			}
			stuck := track(t, ls)
			lw := watch(t, ls, "/workspace", true)
			release := ls.Hold()
			done := make(chan struct{})
			var got []string
			go func() {
				defer close(done)
				for round := range 3 {
					storm(t, loud, 1000)
					w, err := qs.Watch("/workspace", true)
					must(t, err)
					tr := track(t, qs)
					write(t, fmt.Sprintf("%s/mine%d", quiet.ws, round), "x")
					got = append(got, stop(t, tr)...)
					_, err = w.Take()
					must(t, err)
					must(t, w.Close())
				}
				o := newOverlay(t, t.TempDir(), nil)
				s, err := g.Add(o.mount, nil)
				must(t, err)
				must(t, s.Close())
			}()
			select {
			case <-done:
			case <-time.After(30 * time.Second):
				t.Error("another sandbox's commands wait for the one that is stuck")
			}
			release()
			<-done
			if diff := cmp.Diff(got, []string{"created mine0", "created mine1", "created mine2"}); diff != "" {
				t.Errorf("got - want +\n%s", diff)
			}
			// What the stuck one made meanwhile is told.
			c, err := stuck.Stop(t.Context())
			must(t, err)
			if c.Total != 3000 || !c.Complete {
				t.Errorf("got %d changes, complete %v, want 3000 and true", c.Total, c.Complete)
			}
			if got := next(t, ls, lw); len(got) != 3000 {
				t.Errorf("its watch got %d events, want 3000", len(got))
			}
		})
	}
}

// TestWhoFloodsTheQueueLosesItsOwn: beyond the bound of the kernel's queue, the sandbox
// that fills it is not watched for a while, and hears of that; the others lose nothing.
func TestWhoFloodsTheQueueLosesItsOwn(t *testing.T) {
	g, loud, quiet, ls, qs := neighbours(t, changes.Options{Backlog: 1000})
	lt, lw := track(t, ls), watch(t, ls, "/workspace", true)
	qt, qw := track(t, qs), watch(t, qs, "/workspace", true)
	storm(t, quiet, 10)
	storm(t, loud, 5000)
	if c, err := qt.Stop(t.Context()); err != nil || !c.Complete || c.Total != 10 {
		t.Errorf("the quiet one: got %d, complete %v, %v, want all of its 10", c.Total, c.Complete, err)
	}
	if got := next(t, qs, qw); len(got) != 10 {
		t.Errorf("the quiet one's watch got %d events, want 10", len(got))
	}
	if _, watched := ls.Open(); watched {
		t.Error("the one that fills the queue is still watched")
	}
	ls.EndPauseIn(time.Hour) // however long the rest takes
	storm(t, loud, 5000)
	if n := queued(t, g); n != 0 {
		t.Errorf("%d events are queued while it is not watched, want none", n)
	}
	dropped := func() bool {
		es := next(t, ls, lw)
		return len(es) > 0 && es[len(es)-1].Kind == changes.KindDropped
	}
	if !dropped() {
		t.Error("its watch does not hear that events are missing")
	}
	incomplete := func(tr *changes.Tracker) bool {
		t.Helper()
		c, err := tr.Stop(t.Context())
		must(t, err)
		return !c.Complete
	}
	if !incomplete(lt) {
		t.Error("its window is complete, want it not to be")
	}
	if !incomplete(track(t, ls)) {
		t.Error("a window that begins while it is not watched is complete, want it not to be")
	}
	ls.EndPauseIn(0)
	running(t, g)
	eventually(t, "it is watched again", func() bool { return !incomplete(track(t, ls)) })
	eventually(t, "its watch hears that events were missing until then", dropped)
	storm(t, loud, 1)
	eventually(t, "its watch goes on", func() bool { return len(next(t, ls, lw)) == 1 })
}

// TestAWatchGoesOnAfterAPause: also where no command begins that would end the pause.
func TestAWatchGoesOnAfterAPause(t *testing.T) {
	g, loud, _, ls, _ := neighbours(t, changes.Options{Backlog: 100})
	w := watch(t, ls, "/workspace", true)
	storm(t, loud, 2000)
	if n := ls.Drain(); n != 2000 {
		t.Fatalf("%d events were queued, want 2000", n)
	}
	if _, watched := ls.Open(); watched {
		t.Fatal("the one that fills the queue is still watched")
	}
	running(t, g)
	eventually(t, "it is watched again", func() bool { _, watched := ls.Open(); return watched })
	var kinds []changes.Kind
	for _, e := range next(t, ls, w) {
		kinds = append(kinds, e.Kind)
	}
	if !slices.Contains(kinds, changes.KindDropped) {
		t.Errorf("got %v, want it told that events are missing", kinds)
	}
	storm(t, loud, 1)
	eventually(t, "its watch goes on", func() bool { return len(next(t, ls, w)) == 1 })
}

// TestWhatIsReadAndNotBookedIsBounded: for each sandbox, and so that there is room for
// one that begins.
func TestWhatIsReadAndNotBookedIsBounded(t *testing.T) {
	g, loud, quiet, ls, qs := neighbours(t, changes.Options{})
	other := newOverlay(t, t.TempDir(), nil)
	os := add(t, g, other)
	const one, all = 256 << 10, 512 << 10
	g.BoundBacklogs(one, all)
	lt, ot, qt := track(t, ls), track(t, os), track(t, qs)
	storm(t, loud, 10_000)
	storm(t, other, 10_000)
	write(t, quiet.ws+"/mine", "x")
	if diff := cmp.Diff(stop(t, qt), []string{"created mine"}); diff != "" {
		t.Errorf("got - want +\n%s", diff)
	}
	if n := g.Pending(); n <= one/2 || n > one+all/4 {
		t.Errorf("%d bytes are kept of the two that make much, want some, and no more than %d", n, one+all/4)
	}
	for _, tr := range []*changes.Tracker{lt, ot} {
		if c, err := tr.Stop(t.Context()); err != nil || c.Complete || c.Total == 0 {
			t.Errorf("got %d changes, complete %v, %v, want some, and not complete", c.Total, c.Complete, err)
		}
	}
	if n := g.Pending(); n != 0 {
		t.Errorf("%d bytes are kept when all is booked, want none", n)
	}
	tr := track(t, ls)
	write(t, loud.ws+"/again", "x")
	if diff := cmp.Diff(stop(t, tr), []string{"created again"}); diff != "" {
		t.Errorf("got - want +\n%s", diff)
	}
}

// TestAnAnswerDoesNotWaitWithoutEnd: where the queue is not read in time, the answer
// says that it is not complete.
func TestAnAnswerDoesNotWaitWithoutEnd(t *testing.T) {
	g, _, quiet, _, qs := neighbours(t, changes.Options{})
	running(t, g)
	tr := track(t, qs)
	release := g.HoldReading()
	defer release()
	write(t, quiet.ws+"/mine", "x")
	if c, err := tr.Stop(t.Context()); err != nil || c.Complete {
		t.Errorf("got complete %v, %v, want an answer that is not complete", c.Complete, err)
	}
}
