// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

func TestSandboxTokens(t *testing.T) {
	t.Parallel()
	h, ctx := open(t), t.Context()
	s, _, err := h.Create(ctx, v1.CreateSandbox{Key: new("a box"), Token: &v1.CreateSandboxToken{Name: "first"}})
	must(t, err)
	if s.Token == nil || s.Token.Name != "first" || s.Token.SandboxID != s.ID {
		t.Fatalf("the create has %+v", s.Token)
	}
	other := h.box()
	made, err := h.CreateSandboxToken(ctx, "a box", v1.CreateSandboxToken{Scopes: []string{"read"}, ExpiresInSeconds: new(int64(60))})
	must(t, err)
	whole, reads := client.New(h.url, s.Token.Secret, client.Options{}), client.New(h.url, made.Secret, client.Options{})
	if who, err := whole.Whoami(ctx); err != nil || who.SandboxID == nil || *who.SandboxID != s.ID || who.Name != "sandbox:first" {
		t.Errorf("got %+v, %v", who, err)
	}
	if out, err := whole.Exec(ctx, "a box", v1.Exec{Command: new("echo inside")}); err != nil || out.Stdout != "inside\n" {
		t.Errorf("got %+v, %v", out, err)
	}
	_, err = reads.Get(ctx, s.ID)
	must(t, err)
	_, err = reads.Exec(ctx, s.ID, v1.Exec{Command: new("true")})
	wantCode(t, err, fault.Denied)
	_, err = whole.Get(ctx, other)
	wantCode(t, err, fault.NotFound)
	_, err = whole.CreateSandboxToken(ctx, s.ID, v1.CreateSandboxToken{})
	wantCode(t, err, fault.Denied)
	wantCode(t, whole.RotateSandboxTokens(ctx, s.ID), fault.Denied)
	must(t, h.RotateSandboxTokens(ctx, "a box"))
	_, err = whole.Get(ctx, s.ID)
	wantCode(t, err, fault.Unauthenticated)
	_, err = reads.Get(ctx, s.ID)
	wantCode(t, err, fault.Unauthenticated)
	wantCode(t, h.RotateSandboxTokens(ctx, "none"), fault.NotFound)
}
