// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"sandpit.dev/access/bearer"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/rest"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/events"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/skills"
	sandboxtokens "sandpit.dev/engine/tokens"
	"sandpit.dev/fault"
	"sandpit.dev/network/ask"
	"sandpit.dev/network/permit"
	"sandpit.dev/network/preset"
)

const adminToken = "an-admin-token-for-tests"

// house is a client of a real server over the memory runtime.
type house struct {
	*client.Client
	t   testing.TB
	url string
	api *rest.API
}

func open(t testing.TB) *house {
	t.Helper()
	var changes *events.Log
	s := enginetest.Start(t, t.TempDir(), func(e *engine.Options) {
		changes = events.New(e.Store, events.Options{Object: rest.EventObject})
		e.Store = changes.Store()
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- changes.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	tokens, err := bearer.New(s.Keys.Store(), bearer.Options{Admins: []bearer.Secret{bearer.NewSecret(adminToken)}})
	must(t, err)
	must(t, tokens.ServeSandboxes(make([]byte, bearer.SandboxKeySize), s.Engine))
	g, err := guard.New(guard.Options{Tokens: tokens})
	must(t, err)
	presets, err := preset.New(preset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	services := service.Of(s.Creator, s.Files, ports.New(s.Engine), s.Code, s.Runs, ask.NewDesk(s.Engine, func() permit.Rules { return permit.Rules{Presets: presets} }, nil), skills.New(s.Engine, skills.Options{}))
	services.Templates, services.Events = s.Creator.Templates, changes
	services.Tokens = sandboxtokens.New(s.Engine, tokens)
	api, err := rest.New(rest.Options{Services: services, Tokens: tokens, Keys: s.Keys, Guard: g, Version: enginetest.Version})
	must(t, err)
	srv := httptest.NewServer(api)
	t.Cleanup(func() { api.Close(); srv.Close() })
	return &house{client.New(srv.URL, adminToken, client.Options{}), t, srv.URL, api}
}

// box makes a sandbox and returns its id.
func (h *house) box() string {
	h.t.Helper()
	s, created, err := h.Create(h.t.Context(), v1.CreateSandbox{})
	must(h.t, err)
	if !created {
		h.t.Fatal("it was there")
	}
	return s.ID
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, want fault.Code) *fault.Error {
	t.Helper()
	if got := fault.Of(err); got != want {
		t.Fatalf("error: got %q (%v), want %q", got, err, want)
	}
	return fault.As(err)
}
