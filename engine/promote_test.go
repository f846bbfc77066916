// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/engine/update"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
)

// openForked has a sandbox "box" whose file says parent, and its fork "fork" whose file says fork.
func openForked(t *testing.T, change ...func(*engine.CreateRequest)) (h *house, parent, fork *sandbox.Sandbox) {
	h = open(t, t.TempDir())
	r := engine.CreateRequest{Key: "box", Metadata: map[string]string{"of": "box"}, IdleTimeout: ptr(time.Hour), TTL: 2 * time.Hour}
	for _, c := range change {
		c(&r)
	}
	parent = h.create(r)
	h.exec("box", "echo parent > file")
	fork = h.fork("box", engine.ForkRequest{Key: "fork", Metadata: map[string]string{"of": "fork"}})[0]
	h.exec("fork", "echo fork > file")
	return h, parent, fork
}

func (h *house) promote(ref string) *sandbox.Sandbox {
	h.t.Helper()
	s, err := h.engine.Promote(h.t.Context(), alice, ref, engine.PromoteRequest{Name: "before"})
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// tookPlace looks at all that a promotion makes.
func (h *house) tookPlace(parent, fork *sandbox.Sandbox) {
	h.t.Helper()
	s, err := h.engine.Get(h.t.Context(), alice, parent.Key)
	if err != nil {
		h.t.Fatal(err)
	}
	if s.ID != fork.ID || !maps.Equal(s.Metadata, parent.Metadata) || s.IdleTimeout != parent.IdleTimeout || !s.ExpiresAt.Equal(parent.ExpiresAt) {
		h.t.Errorf("got %+v", s)
	}
	for _, gone := range []string{string(parent.ID), "fork"} {
		if _, err := h.engine.Get(h.t.Context(), alice, gone); !fault.Is(err, fault.NotFound) {
			h.t.Errorf("%s: %v", gone, err)
		}
	}
	if got := h.get(parent.ID); got != nil {
		h.t.Errorf("the parent is there: %+v", got)
	}
	kept, err := h.engine.Snapshot(h.t.Context(), alice, parent.Key, "before")
	if err != nil {
		h.t.Fatal(err)
	}
	if s.Parent != kept.ID || kept.Sandbox != fork.ID {
		h.t.Errorf("the fork descends from %s, and the snapshot is %+v", s.Parent, kept)
	}
	if got := h.holds(string(kept.ID), "file"); got != "parent\n" {
		h.t.Errorf("the snapshot's file: %q", got)
	}
	if s.State == sandbox.Running {
		if got := h.reads(parent.Key, "file"); got != "fork\n" {
			h.t.Errorf("the file: %q", got)
		}
	}
	h.whole()
	h.keptWhole()
}

func TestPromote(t *testing.T) {
	h, parent, fork := openForked(t)
	h.snapshot("box", "older")
	of := make(map[string]*ports.Link)
	for _, ref := range []string{"box", "fork"} {
		l, err := h.ports.CreateLink(t.Context(), alice, ref, 8000, 0)
		if err != nil {
			t.Fatal(err)
		}
		of[ref] = l
		if all, err := h.ports.Links(t.Context(), alice, ref); err != nil || len(all) != 1 || all[0].ID != l.ID {
			t.Errorf("before it %s has the links %+v, %v", ref, all, err)
		}
	}
	got := h.promote("fork")
	for ref, was := range of {
		l, _, release, err := h.ports.AdmitLink(t.Context(), was.ID)
		if err != nil {
			t.Errorf("the link of %s: %v", ref, err)
			continue
		}
		release()
		if l.Sandbox != fork.ID || l.Port != 8000 {
			t.Errorf("the link of %s is %+v", ref, l)
		}
	}
	if got.ID != fork.ID || got.Key != "box" || got.State != sandbox.Running {
		t.Errorf("got %+v", got)
	}
	h.tookPlace(parent, fork)
	// The snapshots that the parent had are the fork's, and it can go back to them.
	names := make(map[string]bool)
	for _, snap := range h.list(snapshot.Query{Sandbox: "box"}) {
		names[snap.Name] = true
	}
	if !names["older"] || !names["before"] || len(names) != 2 {
		t.Errorf("snapshots: %v", names)
	}
	if _, err := h.engine.Rollback(t.Context(), alice, "box", "before"); err != nil {
		t.Fatal(err)
	}
	if got := h.reads("box", "file"); got != "parent\n" {
		t.Errorf("after a rollback the file is %q", got)
	}
	h.recorded()
	var promoted *sandbox.Event
	for _, ev := range h.events(fork.ID) {
		if ev.Type == sandbox.EventPromoted {
			promoted = ev
		}
	}
	if promoted == nil || promoted.Actor != "alice" || !strings.Contains(promoted.Detail, string(parent.ID)) {
		t.Errorf("event: %+v", promoted)
	}
	evs := h.events(parent.ID)
	if last := evs[len(evs)-1]; last.Type != sandbox.EventDeleted || last.Cause != sandbox.CausePromote || !strings.Contains(last.Detail, string(fork.ID)) {
		t.Errorf("the parent's last event: %+v", last)
	}
	h.restart()
	if s, err := h.engine.Get(t.Context(), alice, "box"); err != nil || s.ID != fork.ID {
		t.Errorf("after a restart: %+v, %v", s, err)
	}
}

// TestWhatNamesAPromotedSandboxByItsIDIsToldWhoHasItsPlace: by each way to a sandbox, for those who could use it.
func TestWhatNamesAPromotedSandboxByItsIDIsToldWhoHasItsPlace(t *testing.T) {
	h, parent, fork := openForked(t)
	h.promote("fork")
	told := func(what string, err error, by sandbox.ID) {
		t.Helper()
		e := fault.As(err)
		if e.Code != fault.NotFound || e.Reason != sandbox.ReasonPromoted || !strings.Contains(e.Message, string(parent.ID)) || !strings.Contains(e.Message, string(by)) || !strings.Contains(e.Remedy, string(by)) {
			t.Errorf("%s: got %v (%s; reason %q), want that %s has the place", what, err, e.Remedy, e.Reason, by)
		}
	}
	all := func(by sandbox.ID) {
		t.Helper()
		id := string(parent.ID)
		_, err := h.engine.Get(t.Context(), alice, id)
		told("get", err, by)
		_, err = h.engine.Exec(t.Context(), alice, id, engine.ExecRequest{Shell: "true"}, nil)
		told("exec", err, by)
		told("a preview", h.ports.ReachPreview(t.Context(), access.Caller{Project: "default", Actor: "preview", Scopes: []access.Scope{access.SandboxesPorts}}, id), by)
		told("a delete", h.engine.Delete(t.Context(), alice, id), by)
		if got, err := h.engine.Successor(t.Context(), parent.ID); got != by || err != nil {
			t.Errorf("the successor is %s, %v, want %s", got, err, by)
		}
	}
	all(fork.ID)
	plain := func(what string, err error) {
		t.Helper()
		if e := fault.As(err); e.Code != fault.NotFound || e.Reason != sandbox.ReasonNoSandbox || strings.Contains(e.Message+e.Remedy, string(fork.ID)) {
			t.Errorf("%s: got %v (%s)", what, err, e.Remedy)
		}
	}
	_, err := h.engine.Get(t.Context(), access.Caller{Project: "other", Actor: "mallory", Scopes: alice.Scopes}, string(parent.ID))
	plain("of another project", err)
	_, err = h.engine.Get(t.Context(), access.Caller{Project: "default", Actor: "caged", Scopes: alice.Scopes, Sandbox: "another"}, string(parent.ID))
	plain("with a token of another sandbox", err)

	// It is followed through further promotions, and over a restart.
	next := h.fork("box", engine.ForkRequest{Key: "next"})[0]
	if _, err := h.engine.Promote(t.Context(), alice, "next", engine.PromoteRequest{}); err != nil {
		t.Fatal(err)
	}
	h.restart()
	all(next.ID)
	if err := h.engine.Delete(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	_, err = h.engine.Get(t.Context(), alice, string(parent.ID))
	plain("when that is deleted, too", err)
}

func TestSuccessor(t *testing.T) {
	t.Parallel()
	id := sandbox.NewID()
	for detail, want := range map[string]sandbox.ID{
		sandbox.PlaceGiven(id):                            id,
		sandbox.PlaceGiven(id) + " by alice through rest": id,
		"":                                   "",
		"by " + sandbox.PlaceGiven(id):       "", // what a caller is called is no place to name one
		"its fork  was given its place":      "",
		"its fork ../.. was given its place": "",
		"its fork " + string(id):             "",
	} {
		if got := sandbox.Successor(detail); got != want {
			t.Errorf("%q: got %q, want %q", detail, got, want)
		}
	}
}

func TestPromoteInEveryState(t *testing.T) {
	to := map[string]func(h *house, ref string) error{
		"running": func(*house, string) error { return nil },
		"paused":  func(h *house, ref string) error { _, err := h.engine.Pause(h.t.Context(), alice, ref); return err },
		"stopped": func(h *house, ref string) error { _, err := h.engine.Stop(h.t.Context(), alice, ref); return err },
	}
	for parentIs, first := range to {
		for forkIs, second := range to {
			t.Run(parentIs+"_"+forkIs, func(t *testing.T) {
				h, parent, fork := openForked(t)
				if err := first(h, "box"); err != nil {
					t.Fatal(err)
				}
				if err := second(h, "fork"); err != nil {
					t.Fatal(err)
				}
				if got := h.promote("fork"); string(got.State) != forkIs {
					t.Errorf("the fork is %s", got.State)
				}
				h.tookPlace(parent, fork)
			})
		}
	}
}

// Of three ways one is kept; the others are forks of what is gone.
func TestOneOfThreeForksIsKept(t *testing.T) {
	h := open(t, t.TempDir())
	parent := h.create(engine.CreateRequest{Key: "box"})
	h.exec("box", "echo parent > file")
	ways := h.fork("box", engine.ForkRequest{Count: 3})
	for i, w := range ways {
		h.exec(string(w.ID), fmt.Sprintf("echo way %d > file", i))
	}
	h.promote(string(ways[1].ID))
	if got := h.reads("box", "file"); got != "way 1\n" {
		t.Errorf("the file: %q", got)
	}
	_, err := h.engine.Promote(t.Context(), alice, string(ways[0].ID), engine.PromoteRequest{})
	if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), string(parent.ID)) {
		t.Errorf("another one of the three: %v", err)
	}
	// A fork of the one that was kept takes its place in turn.
	again := h.fork("box", engine.ForkRequest{})[0]
	h.exec(string(again.ID), "echo again > file")
	if s, err := h.engine.Promote(t.Context(), alice, string(again.ID), engine.PromoteRequest{}); err != nil || s.Key != "box" {
		t.Fatalf("got %+v, %v", s, err)
	}
	if got := h.reads("box", "file"); got != "again\n" {
		t.Errorf("the file: %q", got)
	}
	h.keptWhole()
}

func TestWhatCannotBePromoted(t *testing.T) {
	mallory := alice
	mallory.Project = "other"
	for name, c := range map[string]struct {
		who  access.Caller
		ref  string
		snap string
		do   func(h *house)
		code fault.Code
	}{
		"NoFork":           {alice, "box", "", nil, fault.State},
		"NoSuch":           {alice, "none", "", nil, fault.NotFound},
		"OfAnotherProject": {mallory, "fork", "", nil, fault.NotFound},
		"WithoutAParent":   {alice, "fork", "", func(h *house) { h.remove("box") }, fault.NotFound},
		"BadName":          {alice, "fork", "a/b", nil, fault.Invalid},
		"ATakenName":       {alice, "fork", "x", func(h *house) { h.snapshot("fork", "x") }, fault.Exists},
		"TwoOfOneName":     {alice, "fork", "", func(h *house) { h.snapshot("fork", "x"); h.snapshot("box", "x") }, fault.Exists},
		"OtherVolumes": {alice, "fork", "", func(h *house) {
			ctx := h.t.Context()
			if _, err := h.volumes().CreateVolume(ctx, alice, volume.Request{Name: "v"}); err != nil {
				h.t.Fatal(err)
			}
			if _, err := h.engine.Stop(ctx, alice, "box"); err != nil {
				h.t.Fatal(err)
			}
			if _, err := h.engine.Update(ctx, alice, "box", update.Patch{Mounts: &[]volume.Mount{{Volume: "v", Path: "/data"}}}); err != nil {
				h.t.Fatal(err)
			}
		}, fault.State},
	} {
		t.Run(name, func(t *testing.T) {
			h, _, _ := openForked(t)
			if c.do != nil {
				c.do(h)
			}
			before := map[string]*sandbox.Sandbox{}
			for _, key := range []string{"box", "fork"} {
				if s, err := h.engine.Get(t.Context(), alice, key); err == nil {
					before[key] = s
				}
			}
			_, err := h.engine.Promote(t.Context(), c.who, c.ref, engine.PromoteRequest{Name: c.snap})
			if !fault.Is(err, c.code) {
				t.Errorf("got %v, want %s", err, c.code)
			}
			for key, was := range before {
				s, err := h.engine.Get(t.Context(), alice, key)
				if err != nil || s.ID != was.ID || s.State != was.State || s.Parent != was.Parent {
					t.Errorf("%s: got %+v, %v", key, s, err)
				}
				if was.State == sandbox.Running {
					h.exec(key, "true")
				}
			}
			h.whole()
			h.keptWhole()
		})
	}
}

// A stopped fork takes the volumes that its parent has by now.
func TestPromoteTakesTheVolumes(t *testing.T) {
	h, _, _ := openForked(t)
	ctx := t.Context()
	if _, err := h.volumes().CreateVolume(ctx, alice, volume.Request{Name: "v"}); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"box", "fork"} {
		if _, err := h.engine.Stop(ctx, alice, ref); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.engine.Update(ctx, alice, "box", update.Patch{Mounts: &[]volume.Mount{{Volume: "v", Path: "/data"}}}); err != nil {
		t.Fatal(err)
	}
	if s := h.promote("fork"); len(s.Mounts) != 1 || s.Mounts[0].Name != "v" {
		t.Errorf("got %+v", s.Mounts)
	}
	if err := h.volumes().DeleteVolume(ctx, alice, "v"); !fault.Is(err, fault.Conflict) {
		t.Errorf("deleting a volume that the fork mounts: %v", err)
	}
}

// Whoever holds the key sees the parent or the fork at any time, and what was answered before the change is in the snapshot.
func TestNobodyWhoHoldsTheKeySeesAGap(t *testing.T) {
	h, parent, _ := openForked(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	written := make(map[sandbox.ID]int) // the last number that was acknowledged, by who had it
	calls := 0
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := 1; ctx.Err() == nil; i++ {
				s, err := h.engine.Get(ctx, alice, "box")
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("a get: %v", err)
					}
					return
				}
				res, err := h.engine.Exec(ctx, alice, "box", engine.ExecRequest{Shell: fmt.Sprintf("echo %d > new-%d; mv new-%d at-%d", i, n, n, n)}, nil) // for it may stand still halfway
				switch {
				case ctx.Err() != nil:
					return
				case err != nil && !strings.Contains(err.Error(), "went down meanwhile"): // it was begun in the parent
					t.Errorf("a command: %v", err)
				}
				mu.Lock()
				if calls++; err == nil && res.ExitCode == 0 && n == 0 {
					if now, err := h.engine.Get(ctx, alice, "box"); err == nil && now.ID == s.ID {
						written[s.ID] = i
					}
				}
				mu.Unlock()
				if _, err := h.engine.Update(ctx, alice, "box", update.Patch{Metadata: &map[string]string{"n": fmt.Sprint(n)}}); err != nil && ctx.Err() == nil {
					t.Errorf("an update: %v", err)
				}
			}
		})
	}
	total := func() int { mu.Lock(); defer mu.Unlock(); return calls }
	h.await("calls by the key", func() bool { return total() > 20 })
	h.promote("fork")
	was := total()
	h.await("calls by the key", func() bool { return total() > was+20 })
	cancel()
	wg.Wait()
	var got int
	if _, err := fmt.Sscan(h.holds("box/before", "at-0"), &got); err != nil || got < written[parent.ID] {
		t.Errorf("the snapshot has the write %d, and %d was acknowledged (%v)", got, written[parent.ID], err)
	}
}

// Promotions and forks in both directions at once end, and of two promotions over one parent one wins.
func TestPromotionsAtOnce(t *testing.T) {
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	forks := h.fork("box", engine.ForkRequest{Count: 4})
	var wg sync.WaitGroup
	won := make(chan sandbox.ID, len(forks))
	for _, f := range forks {
		wg.Go(func() {
			s, err := h.engine.Promote(t.Context(), alice, string(f.ID), engine.PromoteRequest{})
			switch fault.Of(err) {
			case "":
				won <- s.ID
			case fault.NotFound, fault.Conflict:
			default:
				t.Errorf("a promotion: %v", err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d took the place", len(won))
	}
	if s, err := h.engine.Get(t.Context(), alice, "box"); err != nil || s.ID != <-won {
		t.Errorf("got %+v, %v", s, err)
	}
	h.whole()
	h.keptWhole()
}

func TestAPromotionThatFails(t *testing.T) {
	for _, call := range []string{"pause", "snapshot", "remove", "resume"} {
		t.Run(call, func(t *testing.T) {
			h, parent, fork := openForked(t)
			d := h.faulty
			d.set(failing(call), nil)
			_, err := h.engine.Promote(t.Context(), alice, "fork", engine.PromoteRequest{Name: "before"})
			d.set(nil, nil)
			if call == "snapshot" {
				if !fault.Is(err, fault.Unavailable) {
					t.Fatalf("got %v", err)
				}
				for key, want := range map[string]string{"box": "parent\n", "fork": "fork\n"} {
					if got := h.reads(key, "file"); got != want {
						t.Errorf("%s: the file is %q", key, got)
					}
				}
				h.whole()
				h.keptWhole()
				h.promote("fork")
			} else if err != nil {
				t.Fatalf("got %v", err)
			}
			if call == "remove" { // its place is taken, and the clock goes on with it
				h.engine.Strike(t.Context(), parent.ID)
			}
			h.tookPlace(parent, fork)
		})
	}
}

// TestAServerThatIsKilledAtAPromotion kills a server with SIGKILL at every commit point of a promotion. The next one finds both as
// they were, or the fork in its parent's place.
func TestAServerThatIsKilledAtAPromotion(t *testing.T) {
	skiptest.WithShort(t, "a server is killed at each step")
	for point, done := range map[string]bool{
		"snapshot.intent": false, "snapshot.done": false, "snapshot.outcome": true, "promote.outcome": true, "delete.done": true, "delete.outcome": true,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			killAt(t, dir, "kept:promote:"+point)
			h := open(t, dir)
			h.whole()
			h.keptWhole()
			parent := h.events("")[0].Sandbox
			snaps, _ := h.keptRecords()
			s, err := h.engine.Get(t.Context(), alice, "box")
			if err != nil {
				t.Fatal(err)
			}
			if done {
				if s.ID == parent || h.get(parent) != nil || len(snaps) != 2 || h.reads("box", "file") != "three\n" || h.holds("box/before", "file") != "two\n" {
					t.Errorf("got %+v with %d snapshots", s, len(snaps))
				}
				return
			}
			if s.ID != parent || len(snaps) != 1 || h.reads("box", "file") != "two\n" || h.reads("fork", "file") != "three\n" {
				t.Errorf("got %+v with %d snapshots", s, len(snaps))
			}
			h.promote("fork")
			if h.reads("box", "file") != "three\n" || h.holds("box/before", "file") != "two\n" {
				t.Error("a promotion afterwards")
			}
		})
	}
}
