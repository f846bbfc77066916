// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"sandpit.dev/access/bearer"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/memory"
	"sandpit.dev/store/keyed"
	"sandpit.dev/store/sqlstore"
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
	dir := t.TempDir()
	host, err := memory.Open(filepath.Join(dir, "host"), memory.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })
	st, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(dir, "records.db")})
	must(t, err)
	t.Cleanup(func() { must(t, st.Close()) })
	keys := keyed.New(st, keyed.Options{})
	e, err := engine.New(engine.Options{
		Store: keys.Store(), Runtimes: map[string]runtime.Driver{"memory": host.Driver()}, Images: catalogue{}, Version: "v0.0.0-test",
		Defaults: engine.Defaults{StopGrace: 100 * time.Millisecond},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- e.Run(ctx) }()
	go func() { ended <- keys.Run(ctx) }()
	t.Cleanup(func() { cancel(); must(t, <-ended); must(t, <-ended) })
	must(t, e.WaitReady(t.Context()))
	tokens, err := bearer.New(keys.Store(), bearer.Options{Admins: []bearer.Secret{bearer.NewSecret(adminToken)}})
	must(t, err)
	g, err := guard.New(guard.Options{Tokens: tokens})
	must(t, err)
	api, err := rest.New(rest.Options{Engine: e, Tokens: tokens, Keys: keys, Guard: g, Version: "v0.0.0-test"})
	must(t, err)
	srv := httptest.NewServer(api)
	t.Cleanup(func() { api.Close(); srv.Close() })
	return &house{client.New(srv.URL, adminToken, client.Options{}), t, srv.URL, api}
}

// box makes a sandbox and gives its id.
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

var _ rest.Engine = (*engine.Engine)(nil)

// catalogue is one image that is there already.
type catalogue struct{}

func (catalogue) Resolve(name string) (image.Entry, error) {
	if name == "" || name == "python" {
		return image.Entry{Name: "python"}, nil
	}
	return image.Entry{}, fault.New(fault.NotFound, "there is no image %q", name).WithRemedy("use one of: python")
}

func (c catalogue) Ensure(ctx context.Context, name string) (image.Image, error) {
	e, err := c.Resolve(name)
	return image.Image{Name: e.Name, Digest: "sha256:" + e.Name, Root: "/"}, err
}

func (c catalogue) FindDigest(name, digest string) (image.Image, error) {
	return c.Ensure(context.Background(), name)
}

func (c catalogue) List(ctx context.Context) ([]image.Status, error) {
	img, err := c.Ensure(ctx, "python")
	return []image.Status{{Entry: image.Entry{Name: "python"}, State: image.Ready, Image: img}}, err
}
