// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	h, ctx := open(t), t.Context()
	s, _, err := h.Create(ctx, v1.CreateSandbox{Key: new("a user"), Secrets: map[string]any{
		"MINE": "a value of mine", "KEY": v1.SetSecret{Value: "a-bound-value", Hosts: []string{"example.org"}},
	}})
	must(t, err)
	got, err := h.SetSecret(ctx, "", "KEY", v1.SetSecret{Value: "a-value", Header: new("X-Key"), Hosts: []string{"example.net"}})
	if err != nil || got.Name != "KEY" || got.SandboxID != nil || got.Header != "x-key" {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = h.SetSecret(ctx, "a user", "OWN", v1.SetSecret{Value: "another value"})
	if err != nil || got.SandboxID == nil || *got.SandboxID != s.ID || len(got.Hosts) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	for ref, want := range map[string]int{"": 1, "a user": 3, s.ID: 3} {
		if all, err := h.Secrets(ctx, ref); err != nil || len(all) != want {
			t.Errorf("%q: got %+v, %v; want %d", ref, all, err, want)
		}
	}
	if got, err := h.Secret(ctx, "a user", "KEY"); err != nil || got.SandboxID == nil || got.Hosts[0] != "example.org" {
		t.Errorf("the sandbox's own goes before: got %+v, %v", got, err)
	}
	if got, err := h.Secret(ctx, "", "KEY"); err != nil || got.Hosts[0] != "example.net" {
		t.Errorf("got %+v, %v", got, err)
	}
	must(t, h.DeleteSecret(ctx, "a user", "OWN"))
	wantCode(t, h.DeleteSecret(ctx, "a user", "OWN"), fault.NotFound)
	must(t, h.DeleteSecret(ctx, "", "KEY"))
	_, err = h.SetSecret(ctx, "", "NO NAME", v1.SetSecret{Value: "a-value"})
	wantCode(t, err, fault.Invalid)
	_, err = h.SetSecret(ctx, "none", "A", v1.SetSecret{Value: "a-value"})
	wantCode(t, err, fault.NotFound)
}
