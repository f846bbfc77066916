// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

func TestVolumes(t *testing.T) {
	t.Parallel()
	h, ctx := open(t), t.Context()
	v, err := h.CreateVolume(ctx, v1.CreateVolume{Name: "my data"})
	must(t, err)
	if v.ID == "" || v.Name != "my data" || v.Status != "ready" || len(v.Users) != 0 {
		t.Errorf("got %+v", v)
	}
	_, err = h.CreateVolume(ctx, v1.CreateVolume{Name: "my data"})
	wantCode(t, err, fault.Exists)
	s, _, err := h.Create(ctx, v1.CreateSandbox{Key: new("user"), Volumes: []v1.MountVolume{{Volume: "my data", Path: "/mnt/data", SubPath: new("sub"), ReadOnly: true}}})
	must(t, err)
	want := []v1.Mount{{Volume: "my data", VolumeID: v.ID, Path: "/mnt/data", SubPath: "sub", ReadOnly: true}}
	if !slices.Equal(s.Volumes, want) {
		t.Errorf("got %+v, want %+v", s.Volumes, want)
	}
	for _, name := range []string{"my data", v.ID} {
		if got, err := h.Volume(ctx, name); err != nil || got.ID != v.ID || !slices.Equal(got.Users, []string{s.ID}) {
			t.Errorf("%q: got %+v, %v", name, got, err)
		}
	}
	all, err := h.Volumes(ctx)
	if err != nil || len(all) != 1 || all[0].ID != v.ID {
		t.Errorf("got %+v, %v", all, err)
	}
	err = h.DeleteVolume(ctx, "my data")
	if e := wantCode(t, err, fault.Conflict); !strings.Contains(e.Error()+e.Remedy, "user") && !strings.Contains(e.Error()+e.Remedy, s.ID) {
		t.Errorf("the refusal does not name who mounts it: %v (%s)", e, e.Remedy)
	}
	_, err = h.Update(ctx, s.ID, v1.UpdateSandbox{Volumes: []v1.MountVolume{}})
	wantCode(t, err, fault.State)
	_, err = h.Stop(ctx, s.ID)
	must(t, err)
	if got, err := h.Update(ctx, s.ID, v1.UpdateSandbox{Volumes: []v1.MountVolume{}}); err != nil || len(got.Volumes) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	v, err = h.UpdateVolume(ctx, "my data", v1.UpdateVolume{LifetimeSeconds: new(int64(86400))})
	must(t, err)
	if v.Lifetime == nil || *v.Lifetime != 86400 || v.ExpiresAt == nil || v.ExpiresAt.Sub(v.CreatedAt) != 24*time.Hour {
		t.Errorf("got %+v", v)
	}
	must(t, h.DeleteVolume(ctx, v.ID))
	wantCode(t, h.DeleteVolume(ctx, v.ID), fault.NotFound)
	_, _, err = h.Create(ctx, v1.CreateSandbox{Volumes: []v1.MountVolume{{Volume: "my data", Path: "/mnt/data"}}})
	if got := fault.Of(err); got != fault.NotFound && got != fault.Invalid {
		t.Errorf("a volume that is gone: got %v", err)
	}
}
