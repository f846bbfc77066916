// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"net/netip"
	"testing"
)

// Beside each attack, which lasts until it is ended, every command of another tenant works.
func TestACommandGoesOnBesideEachAttack(t *testing.T) {
	program, images := guarded(t)
	ctx := t.Context()
	server, err := startServer(ctx, program, t.TempDir(), images, 0, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	s := &session{server: server, us: &ours{client: server.client, pid: server.cmd.Process.Pid}}
	victim, err := s.tenant(ctx, "victim")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := victim.leave(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	if err := victim.create(ctx, nil); err != nil {
		t.Fatal(err)
	}
	const n = 10
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			got, cores, err := s.beside(ctx, a, victim, 1, n)
			if err != nil {
				t.Fatal(err)
			}
			if got.Quiet.OK != n || got.Attacked.OK != n {
				t.Errorf("%d of %d commands worked before, %d beside it", got.Quiet.OK, n, got.Attacked.OK)
			}
			if got.P50 == nil || got.P99 == nil || cores <= 0 {
				t.Errorf("p50 %v, p99 %v of an attacker with %v cores", got.P50, got.P99, cores)
			}
			t.Logf("%d requests answered, %d refused", got.Answered, got.Refused)
		})
	}
}
