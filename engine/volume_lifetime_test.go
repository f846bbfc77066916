// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// later is a clock that runs ahead of the host's by what was added.
type later struct{ ahead atomic.Int64 }

func (l *later) now() time.Time      { return time.Now().Add(time.Duration(l.ahead.Load())) }
func (l *later) add(d time.Duration) { l.ahead.Add(int64(d)) }

func (l *later) options(o *engine.Options) { o.Now, o.JanitorRound = l.now, 10*time.Millisecond }

// lasting makes a volume with a lifetime.
func (h *house) lasting(name string, life time.Duration) volume.Info {
	h.t.Helper()
	v, err := h.volumes().CreateVolume(h.t.Context(), alice, volume.Request{Name: name, Lifetime: life})
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}

// gone waits until there is no record of a volume of a name.
func (h *house) gone(name string) {
	h.t.Helper()
	h.await("the volume "+name+" to go", func() bool {
		err := h.store.View(h.t.Context(), func(tx store.Tx) error { _, err := tx.Volumes().ByName(alice.Project, name); return err })
		return fault.Is(err, fault.NotFound)
	})
}

func (h *house) ofVolume(id sandbox.ID) (types []sandbox.EventType, all []*sandbox.Event) {
	h.t.Helper()
	for _, ev := range h.events("") {
		if ev.ProcessID == string(id) {
			types, all = append(types, ev.Type), append(all, ev)
		}
	}
	return types, all
}

func TestAVolumeIsDeletedAfterItsLifetimeOnceNothingMountsIt(t *testing.T) {
	t.Parallel()
	var clock later
	h := open(t, t.TempDir(), clock.options)
	ctx := t.Context()
	kept := h.volume("kept")
	used := h.lasting("used", time.Hour)
	if used.Lifetime() != time.Hour || !used.ExpiresAt.Equal(used.CreatedAt.Add(time.Hour)) || kept.Lifetime() != 0 {
		t.Errorf("got %+v", used)
	}
	h.create(engine.CreateRequest{Key: "a", Mounts: []volume.Mount{{Volume: "used", Path: "/mnt"}}})
	h.exec("a", "echo kept >/mnt/f")
	if _, err := h.engine.Stop(ctx, alice, "a"); err != nil {
		t.Fatal(err)
	}
	// Whoever looks for those that expired finds the one that is mounted before this one.
	h.lasting("unused", 90*time.Minute)
	clock.add(2 * time.Hour)
	h.gone("unused")
	if _, err := h.engine.Start(ctx, alice, "a"); err != nil {
		t.Fatal(err)
	}
	if got := h.reads("a", "/mnt/f"); got != "kept\n" {
		t.Errorf("a stopped sandbox's volume has %q", got)
	}
	h.create(engine.CreateRequest{Key: "b", Mounts: []volume.Mount{{Volume: "used", Path: "/mnt"}}})
	h.remove("a")
	h.lasting("unused again", time.Second)
	clock.add(time.Minute)
	h.gone("unused again")
	if got := h.reads("b", "/mnt/f"); got != "kept\n" {
		t.Errorf("what expired is mounted again, and has %q", got)
	}
	h.remove("b")
	h.gone("used")
	types, all := h.ofVolume(used.ID)
	if want := []sandbox.EventType{sandbox.EventVolume, sandbox.EventVolumeExpired, sandbox.EventVolumeDeleted}; !slices.Equal(types, want) {
		t.Fatalf("got the events %v, want %v", types, want)
	}
	for _, ev := range all[1:] {
		if ev.Actor != sandbox.System || ev.Project != used.Project || !strings.Contains(ev.Detail, `"used"`) || !strings.Contains(ev.Detail, "lifetime of 1h0m0s") {
			t.Errorf("got %+v", ev)
		}
	}
	if _, err := h.volumes().Volume(ctx, alice, "kept"); err != nil {
		t.Errorf("one without a lifetime: %v", err)
	}
	h.keptWhole()
}

func TestALifetimeHoldsAcrossRestartsAndChanges(t *testing.T) {
	t.Parallel()
	var clock later
	h := open(t, t.TempDir(), clock.options)
	ctx := t.Context()
	update := func(name string, life time.Duration) volume.Info {
		t.Helper()
		v, err := h.volumes().UpdateVolume(ctx, alice, name, volume.Patch{Lifetime: &life})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	short, long, none := h.lasting("short", time.Hour), h.lasting("long", time.Hour), h.lasting("none", time.Hour)
	if v := update("long", 48*time.Hour); !v.ExpiresAt.Equal(long.CreatedAt.Add(48 * time.Hour)) {
		t.Errorf("got %+v", v)
	}
	if v := update("none", 0); !v.ExpiresAt.IsZero() {
		t.Errorf("got %+v", v)
	}
	update("none", 0) // again: nothing is changed, and nothing told
	if types, all := h.ofVolume(none.ID); !slices.Equal(types, []sandbox.EventType{sandbox.EventVolume, sandbox.EventVolumeUpdated}) || all[1].Actor != "alice" {
		t.Errorf("got %v", types)
	}
	h.end()
	clock.add(2 * time.Hour) // while none runs
	h.serve(clock.options)
	h.gone("short")
	if types, _ := h.ofVolume(short.ID); !slices.Contains(types, sandbox.EventVolumeExpired) {
		t.Errorf("got %v", types)
	}
	for _, name := range []string{"long", "none"} {
		if _, err := h.volumes().Volume(ctx, alice, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	update("long", time.Hour) // from its creation: it has passed
	h.gone("long")

	for _, bad := range []time.Duration{-time.Second, sandbox.MaxVolumeLifetime + time.Second, time.Millisecond} {
		_, err := h.volumes().UpdateVolume(ctx, alice, "none", volume.Patch{Lifetime: &bad})
		wantCode(t, err, fault.Invalid)
		_, err = h.volumes().CreateVolume(ctx, alice, volume.Request{Name: "x", Lifetime: bad})
		wantCode(t, err, fault.Invalid)
	}
	life := time.Hour
	for _, c := range []struct {
		code fault.Code
		err  error
	}{
		{fault.NotFound, refused(h.volumes().UpdateVolume(ctx, mary, "none", volume.Patch{Lifetime: &life}))},
		{fault.NotFound, refused(h.volumes().UpdateVolume(ctx, alice, "missing", volume.Patch{Lifetime: &life}))},
		{fault.Denied, refused(h.volumes().UpdateVolume(ctx, nobody, "none", volume.Patch{Lifetime: &life}))},
	} {
		wantCode(t, c.err, c.code)
	}
	h.keptWhole()
}

func refused(_ volume.Info, err error) error { return err }
