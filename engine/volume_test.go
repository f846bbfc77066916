// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/internal/checktest"
	"sandpit.dev/sandbox"
)

func (h *house) volume(name string) volume.Info {
	h.t.Helper()
	v, err := h.volumes().CreateVolume(h.t.Context(), alice, volume.Request{Name: name})
	if err != nil {
		h.t.Fatalf("CreateVolume %s: %v", name, err)
	}
	return v
}

func TestVolumes(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	v := h.volume("data")
	checktest.Equal(t, "Name", v.Name, "data")
	checktest.Equal(t, "Project", v.Project, "default")
	checktest.Equal(t, "Runtime", v.Runtime, "memory")
	checktest.Equal(t, "State", v.State, sandbox.VolumeReady)
	checktest.Equal(t, "CreatedBy", v.CreatedBy, "alice")
	checktest.Equal(t, "UsedBytes", v.UsedBytes, 0)
	checktest.Len(t, "Users", v.Users, 0)
	if ev := h.events("")[0]; ev.Type != sandbox.EventVolume || ev.Sandbox != "" || ev.ProcessID != string(v.ID) || ev.Actor != "alice" || !strings.Contains(ev.Detail, `"data"`) {
		t.Errorf("the event: %+v", ev)
	}
	a := h.create(engine.CreateRequest{Key: "a", Mounts: []volume.Mount{{Volume: "data", Path: "/workspace/data"}}})
	b := h.create(engine.CreateRequest{Key: "b", Mounts: []volume.Mount{{Volume: string(v.ID), Path: "/workspace/data"}, {Volume: "data", Path: "/workspace/sub", Sub: "x/y", ReadOnly: true}}})
	if want := []sandbox.Mount{{Volume: v.ID, Name: "data", Path: "/workspace/data"}, {Volume: v.ID, Name: "data", Path: "/workspace/sub", Sub: "x/y", ReadOnly: true}}; !slices.Equal(b.Mounts, want) {
		t.Errorf("mounts: %+v", b.Mounts)
	}
	t.Run("AreShared", func(t *testing.T) {
		h.exec("a", "echo hello > data/file; echo deep > data/x/y/file")
		if got := h.reads("b", "data/file sub/file"); got != "hello\ndeep\n" {
			t.Errorf("the other sees %q", got)
		}
		got, err := h.volumes().Volume(t.Context(), alice, "data")
		users := []sandbox.ID{a.ID, b.ID}
		slices.Sort(users)
		if err != nil || got.UsedBytes < 6 || !slices.Equal(got.Users, users) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("OutliveStopsAndRollbacksAndAreInForks", func(t *testing.T) {
		if _, err := h.engine.Stop(t.Context(), alice, "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.engine.Start(t.Context(), alice, "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.engine.Reset(t.Context(), alice, "a"); err != nil {
			t.Fatal(err)
		}
		if got := h.reads("a", "data/file"); got != "hello\n" {
			t.Errorf("after a restart: %q", got)
		}
		fork := h.fork("b", engine.ForkRequest{})[0]
		if !slices.Equal(fork.Mounts, b.Mounts) {
			t.Errorf("a fork's mounts: %+v", fork.Mounts)
		}
		h.exec(string(fork.ID), "echo fork > data/file")
		if got := h.reads("a", "data/file"); got != "fork\n" {
			t.Errorf("what a fork wrote: %q", got)
		}
		h.remove(string(fork.ID))
	})
	t.Run("AreNoPartOfSnapshots", func(t *testing.T) {
		snap := h.snapshot("b", "")
		if got := h.holds(string(snap.ID), "data/file"); got != "" {
			t.Errorf("it holds %q", got)
		}
	})
	t.Run("AreNotDeletedWhileMounted", func(t *testing.T) {
		if _, err := h.engine.Stop(t.Context(), alice, "b"); err != nil {
			t.Fatal(err)
		}
		err := h.volumes().DeleteVolume(t.Context(), alice, "data")
		wantCode(t, err, fault.Conflict)
		if m := fault.As(err).Message; !strings.Contains(m, "a") || !strings.Contains(m, "b") {
			t.Errorf("message: %q", m)
		}
		h.remove("a")
		wantCode(t, h.volumes().DeleteVolume(t.Context(), alice, "data"), fault.Conflict)
		h.remove("b")
		h.settledKept()
		if got, err := h.volumes().Volume(t.Context(), alice, "data"); err != nil || len(got.Users) != 0 {
			t.Errorf("it went with its sandboxes: %+v, %v", got, err)
		}
		if err := h.volumes().DeleteVolume(t.Context(), alice, string(v.ID)); err != nil {
			t.Fatal(err)
		}
		h.keptWhole()
		evs := h.events("")
		if last := evs[len(evs)-1]; last.Type != sandbox.EventVolumeDeleted || last.ProcessID != string(v.ID) || last.Actor != "alice" || !strings.Contains(last.Detail, `"data"`) {
			t.Errorf("the event: %+v", last)
		}
		wantCode(t, h.volumes().DeleteVolume(t.Context(), alice, "data"), fault.NotFound)
	})
}

func TestVolumeNames(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	b, a := h.volume("b"), h.volume("a")
	_, err := h.volumes().CreateVolume(t.Context(), alice, volume.Request{Name: "a"})
	wantCode(t, err, fault.Exists)
	if _, err := h.volumes().CreateVolume(t.Context(), mary, volume.Request{Name: "a"}); err != nil {
		t.Errorf("in another project: %v", err)
	}
	all, err := h.volumes().Volumes(t.Context(), alice)
	if err != nil {
		t.Fatal(err)
	}
	checktest.Len(t, "all", all, 2)
	checktest.Equal(t, "ID", all[0].ID, a.ID)
	checktest.Equal(t, "ID", all[1].ID, b.ID)
	for _, ref := range []string{string(a.ID), "missing", "b", "", "/"} {
		_, err := h.volumes().Volume(t.Context(), mary, ref)
		wantCode(t, err, fault.NotFound)
		wantCode(t, h.volumes().DeleteVolume(t.Context(), mary, ref), fault.NotFound)
	}
	_, _, err = h.engine.Create(t.Context(), mary, engine.CreateRequest{Mounts: []volume.Mount{{Volume: string(a.ID), Path: "/mnt"}}})
	wantCode(t, err, fault.NotFound)
	for _, r := range []volume.Request{
		{}, {Name: "a/b"}, {Name: string(sandbox.NewID())}, {Name: "x", SizeMB: -1}, {Name: "x", SizeMB: sandbox.MaxDiskMB + 1}, {Name: "x", Runtime: "vax"},
	} {
		_, err := h.volumes().CreateVolume(t.Context(), alice, r)
		wantCode(t, err, fault.Invalid)
	}
	_, err = h.volumes().CreateVolume(t.Context(), nobody, volume.Request{Name: "x"})
	wantCode(t, err, fault.Denied)
	wantCode(t, h.volumes().DeleteVolume(t.Context(), nobody, "a"), fault.Denied)
	h.keptWhole()
}

func TestMounts(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.volume("v")
	many := make([]volume.Mount, sandbox.MaxMounts+1)
	for i := range many {
		many[i] = volume.Mount{Volume: "v", Path: "/mnt/" + strings.Repeat("x", i+1)}
	}
	mount := func(m ...volume.Mount) error {
		_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Mounts: m})
		return err
	}
	for _, path := range []string{"", "x", "/", "/proc", "/proc/x", "/sys/x", "/dev", "/x/../y", "/x/", "//x", "/x\x00", "/" + strings.Repeat("x", 5000)} {
		wantCode(t, mount(volume.Mount{Volume: "v", Path: path}), fault.Invalid)
	}
	for _, sub := range []string{"/x", "..", "../x", "x/../..", "x//y", ".", "x\x00"} {
		wantCode(t, mount(volume.Mount{Volume: "v", Path: "/mnt/x", Sub: sub}), fault.Invalid)
	}
	wantCode(t, mount(volume.Mount{Volume: "v", Path: "/mnt/x"}, volume.Mount{Volume: "v", Path: "/mnt/x"}), fault.Invalid)
	wantCode(t, mount(volume.Mount{Volume: "", Path: "/mnt/x"}), fault.Invalid)
	wantCode(t, mount(volume.Mount{Volume: "missing", Path: "/mnt/x"}), fault.NotFound)
	wantCode(t, mount(many...), fault.Invalid)
	if got := h.instances(); len(got) != 0 {
		t.Errorf("instances are left: %v", got)
	}
	if err := mount(many[1:]...); err != nil {
		t.Errorf("as many as there may be: %v", err)
	}

	t.Run("ChangeWhileItIsStopped", func(t *testing.T) {
		h.create(engine.CreateRequest{Key: "box"})
		h.exec("box", "true")
		list := []volume.Mount{{Volume: "v", Path: "/workspace/v"}}
		_, err := h.engine.Update(t.Context(), alice, "box", update.Patch{Mounts: &list})
		wantCode(t, err, fault.State)
		if e := fault.As(err); !strings.Contains(e.Message, "mounts") || !strings.Contains(e.Remedy, "stop box") {
			t.Errorf("message %q, remedy %q", e.Message, e.Remedy)
		}
		if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		got, err := h.engine.Update(t.Context(), alice, "box", update.Patch{Mounts: &list})
		if err != nil {
			t.Fatal(err)
		}
		checktest.Len(t, "Mounts", got.Mounts, 1)
		checktest.Equal(t, "Mounts[0].Name", got.Mounts[0].Name, "v")
		if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		h.exec("box", "echo hello > v/file")
		if _, err := h.engine.Update(t.Context(), alice, "box", update.Patch{Mounts: &list}); err != nil {
			t.Errorf("the same again: %v", err)
		}
		list[0].Volume = "missing"
		_, err = h.engine.Update(t.Context(), alice, "box", update.Patch{Mounts: &list})
		wantCode(t, err, fault.NotFound)
		if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		list = nil
		if got, err = h.engine.Update(t.Context(), alice, "box", update.Patch{Mounts: &list}); err != nil || len(got.Mounts) != 0 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// A volume is mounted or deleted, whoever comes first.
func TestAVolumeThatIsMountedAndDeletedAtOnce(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	for range 10 {
		h.volume("v")
		var wg sync.WaitGroup
		var made *sandbox.Sandbox
		var createErr, deleteErr error
		wg.Go(func() {
			made, _, createErr = h.engine.Create(t.Context(), alice, engine.CreateRequest{Mounts: []volume.Mount{{Volume: "v", Path: "/mnt/v"}}})
		})
		wg.Go(func() { deleteErr = h.volumes().DeleteVolume(t.Context(), alice, "v") })
		wg.Wait()
		switch {
		case createErr == nil && fault.Is(deleteErr, fault.Conflict):
			h.remove(string(made.ID))
			if err := h.volumes().DeleteVolume(t.Context(), alice, "v"); err != nil {
				t.Fatal(err)
			}
		case deleteErr == nil && fault.Is(createErr, fault.NotFound):
		default:
			t.Fatalf("create: %v; delete: %v", createErr, deleteErr)
		}
		h.keptWhole()
	}
}

func TestAVolumeThatFails(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.faulty.set(failing("create volume"), nil)
	_, err := h.volumes().CreateVolume(t.Context(), alice, volume.Request{Name: "v"})
	wantCode(t, err, fault.Unavailable)
	h.faulty.set(nil, failing("create volume"))
	_, err = h.volumes().CreateVolume(t.Context(), alice, volume.Request{Name: "v"})
	wantCode(t, err, fault.Unavailable)
	h.faulty.set(nil, nil)
	h.keptWhole()
	v := h.volume("v")
	h.faulty.set(failing("remove volume"), nil)
	wantCode(t, h.volumes().DeleteVolume(t.Context(), alice, "v"), fault.Unavailable)
	_, err = h.volumes().Volume(t.Context(), alice, string(v.ID))
	wantCode(t, err, fault.NotFound)
	_, _, err = h.engine.Create(t.Context(), alice, engine.CreateRequest{Mounts: []volume.Mount{{Volume: string(v.ID), Path: "/mnt/v"}}})
	wantCode(t, err, fault.NotFound)
	h.restart()
	h.keptWhole()
	v = h.volume("v")
	h.faulty.set(failing("remove volume"), nil)
	wantCode(t, h.volumes().DeleteVolume(t.Context(), alice, "v"), fault.Unavailable)
	h.faulty.set(nil, nil)
	h.engine.Strike(t.Context(), v.ID)
	h.keptWhole()
	n := 0
	for _, ev := range h.events("") {
		if ev.Type == sandbox.EventVolumeDeleted {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d events of deletions", n)
	}
}
