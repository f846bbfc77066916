// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/orkestr"
	"sandpit.dev/api/rest"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/events"
	"sandpit.dev/engine/templates"
	"sandpit.dev/engine/volume"
	"sandpit.dev/internal/seal"
	"sandpit.dev/template"
	"sandpit.dev/webhooks"
)

// sent is a delivery in Orkestr's form.
type sent struct {
	typ, id, delivery, object, status string
}

// TestEventsHaveOrkestrsNamesInItsFormat has a server do what Orkestr has names for, and some that it has none for.
func TestEventsHaveOrkestrsNamesInItsFormat(t *testing.T) {
	secret := make(chan string, 1)
	got := make(chan sent, 100)
	key := sync.OnceValue(func() string { return <-secret })
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		m := hmac.New(sha256.New, []byte(key()))
		m.Write(b)
		if want := "sha256=" + hex.EncodeToString(m.Sum(nil)); r.Header.Get("X-Orkestr-Signature") != want || r.Header.Get(webhooks.SignatureHeader) != "" {
			t.Errorf("got %v, want the signature %s", r.Header, want)
		}
		var e struct {
			ID   string
			Type string `json:"event_type"`
			Data struct{ ID, Status string }
		}
		if err := json.Unmarshal(b, &e); err != nil || e.Type != r.Header.Get("X-Orkestr-Event") || e.ID == "" {
			t.Errorf("got %s (%v)", b, err)
		}
		got <- sent{e.Type, e.ID, r.Header.Get("X-Orkestr-Delivery"), e.Data.ID, e.Data.Status}
	}))
	t.Cleanup(receiver.Close)

	var log *events.Log
	s := enginetest.Start(t, t.TempDir(), func(o *engine.Options) {
		log = events.New(o.Store, events.Options{Object: rest.EventObject})
		o.Store, o.JanitorRound = log.Store(), 10*time.Millisecond
	})
	ring, err := seal.Parse(seal.Generate())
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := WebhooksConfig{Allow: []string{"127.0.0.1"}}.open(s.Store, log, ring, nil, "v1.2.3", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- log.Run(ctx) }()
	go func() { ended <- hooks.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	alice := access.Caller{Project: access.DefaultProject, Actor: "alice", Via: "rest", Scopes: []access.Scope{access.Admin, access.SandboxesRead, access.SandboxesWrite}}
	_, text, err := hooks.Create(ctx, alice, webhooks.Change{URL: &receiver.URL, Format: new(orkestr.WebhookFormat)})
	if err != nil {
		t.Fatal(err)
	}
	secret <- text
	next := func(typ, id, status string) {
		t.Helper()
		select {
		case d := <-got:
			if d.typ != typ || d.object != id || d.status != status || d.delivery == "" {
				t.Fatalf("got %+v, want %s of %s, which is %s", d, typ, id, status)
			}
		case <-time.After(time.Minute):
			t.Fatalf("there is no %s of %s", typ, id)
		}
	}

	box, _, err := s.Creator.Create(ctx, alice, engine.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	id := string(box.ID)
	next("sandbox.created", id, "starting")
	for _, step := range []struct {
		do          func() error
		typ, status string
	}{
		{func() error { _, err := s.Engine.Pause(ctx, alice, id); return err }, "sandbox.paused", "paused"},
		{func() error { _, err := s.Engine.Resume(ctx, alice, id); return err }, "sandbox.resumed", "running"},
		{func() error { _, err := s.Engine.Stop(ctx, alice, id); return err }, "sandbox.paused", "paused"},
		{func() error { _, err := s.Engine.Start(ctx, alice, id); return err }, "sandbox.resumed", "running"},
		{func() error { return s.Engine.Delete(ctx, alice, id) }, "sandbox.terminated", "terminated"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		next(step.typ, id, step.status)
	}
	short, _, err := s.Creator.Create(ctx, alice, engine.CreateRequest{TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	next("sandbox.created", string(short.ID), "starting")
	next("sandbox.expired", string(short.ID), "terminated")

	v, err := volume.NewService(s.Engine).CreateVolume(ctx, alice, volume.Request{Name: "data", Lifetime: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	next("volume.expired", string(v.ID), "deleting")

	// A build that fails is finished, too.
	failed, _, err := s.Creator.Templates.Create(ctx, alice, templates.Request{Name: "steps", Spec: template.Spec{Steps: []string{"false"}}})
	if err != nil {
		t.Fatal(err)
	}
	var built []sent
	for len(built) == 0 || built[len(built)-1].typ != "template.build_finished" {
		select {
		case d := <-got:
			built = append(built, d)
		case <-time.After(time.Minute):
			t.Fatalf("got %+v", built)
		}
	}
	if last := built[len(built)-1]; last.object != failed.ID || last.status != "failed" {
		t.Errorf("got %+v", last)
	}
	made, _, err := s.Creator.Templates.Create(ctx, alice, templates.Request{Name: "plain", Spec: template.Spec{Env: map[string]string{"A": "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	next("template.build_finished", made.ID, "ready")
	for _, on := range []bool{false, true} { // no build ends
		if _, err := s.Creator.Templates.SetActive(ctx, alice, made.ID, on); err != nil {
			t.Fatal(err)
		}
	}
	last, _, err := s.Creator.Create(ctx, alice, engine.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	next("sandbox.created", string(last.ID), "starting")
	if known := orkestr.Deliveries().Types; !slices.Contains(known, "volume.moved") || len(known) != 8 {
		t.Errorf("got %v", known)
	}
}
