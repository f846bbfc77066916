// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/events"
	"sandpit.dev/fault"
	"sandpit.dev/internal/seal"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
	"sandpit.dev/webhooks"
)

func TestWebhooksReachWhatTheConfigurationAllows(t *testing.T) {
	got := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
	}))
	defer receiver.Close()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "records.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ring, err := seal.Parse(seal.Generate())
	if err != nil {
		t.Fatal(err)
	}
	alice := access.Caller{Project: access.DefaultProject, Actor: "alice", Scopes: []access.Scope{access.Admin}}
	log := events.New(db, events.Options{Object: func(any) any { return map[string]string{"name": "data"} }})
	for name, c := range map[string]struct {
		file, refused string
		block         []netip.Prefix
	}{
		"AsShipped":       {"", "not of the public internet", nil},
		"Another":         {"webhooks: {allow: [127.0.0.2, 10.0.0.0/8]}", "not of the public internet", nil},
		"AnAddress":       {"webhooks: {allow: [127.0.0.1]}", "", nil},
		"ARange":          {"webhooks:\n  allow: [10.0.0.0/8, 127.0.0.0/30]", "", nil},
		"NamedAndBlocked": {"webhooks: {allow: [127.0.0.1]}", "", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			if err := cfg.ReadFile(write(t, c.file)); err != nil {
				t.Fatal(err)
			}
			s, err := cfg.Webhooks.open(db, log, ring, c.block, "v1.2.3", slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			w, _, err := s.Create(t.Context(), alice, webhooks.Change{URL: &receiver.URL})
			if c.refused != "" {
				if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			err = log.Store().Update(t.Context(), func(tx store.Tx) error {
				return tx.Volumes().Insert(&sandbox.Volume{ID: sandbox.NewID(), Project: alice.Project, Name: name, Runtime: "memory", State: sandbox.VolumeReady, CreatedAt: time.Now()})
			})
			if err != nil {
				t.Fatal(err)
			}
			if body := <-got; !strings.Contains(body, `"type":"volume.created"`) || !strings.Contains(body, `"name":"data"`) {
				t.Errorf("got %s", body)
			}
			if err := s.Delete(t.Context(), alice, w.ID); err != nil {
				t.Error(err)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	cfg := DefaultConfig()
	cfg.Webhooks.Allow = []string{"hooks.example.org"}
	if _, err := cfg.Webhooks.open(db, log, ring, nil, "v1.2.3", slog.Default()); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "webhooks.allow") {
		t.Errorf("a name: got %v", err)
	}
}
