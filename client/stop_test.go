// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

func TestStopWithin(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	s, _, err := h.Create(ctx, v1.CreateSandbox{TTLSeconds: new(int64(60)), OnExpiry: new("stop")})
	if err != nil || s.OnExpiry != "stop" || s.ExpiresAt == nil {
		t.Fatalf("got %+v, %v", s, err)
	}
	if _, err := h.StopWithin(ctx, s.ID, -time.Second); !fault.Is(err, fault.Invalid) {
		t.Errorf("a grace below 0: %v", err)
	}
	if s, err = h.StopWithin(ctx, s.ID, 0); err != nil || s.Status != "stopped" {
		t.Errorf("got %+v, %v", s, err)
	}
	for s, err := range h.List(ctx, client.ListQuery{SortBy: "memory_mb", MemoryFrom: s.MemoryMB + 1, CreatedFrom: s.CreatedAt}) {
		t.Errorf("got %+v, %v", s, err)
	}
	n := 0
	for one, err := range h.List(ctx, client.ListQuery{SortBy: "expires_at", CPUTo: s.CPUCores, ExpiresFrom: s.CreatedAt, ActivityTo: time.Now()}) {
		if n++; err != nil || one.ID != s.ID {
			t.Errorf("got %+v, %v", one, err)
		}
	}
	if n != 1 {
		t.Errorf("%d are listed", n)
	}
	if s, err = h.Update(ctx, s.ID, v1.UpdateSandbox{OnExpiry: new("pause")}); err != nil || s.OnExpiry != "pause" {
		t.Errorf("got %+v, %v", s, err)
	}
}
