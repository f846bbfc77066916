// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/engine/events"
	"sandpit.dev/fault"
	"sandpit.dev/store"
	"sandpit.dev/webhooks"
)

// shouted is a format that has one event, in capitals.
var shouted = webhooks.Format{
	Types: []string{"SHOUT"},
	Type: func(e *events.Event) string {
		if e.Type != "volume.created" || strings.Contains(string(e.Object), "quiet") {
			return ""
		}
		return "SHOUT"
	},
	Body: func(e *events.Event, typ string) []byte { return fmt.Appendf(nil, "%s %s", typ, e.Object) },
	Sign: func(h http.Header, d *webhooks.Delivery, secret string) {
		h.Set("X-Shouted", d.ID+" "+d.Type+" "+secret)
	},
}

func TestAFormatHasItsOwnTypesBodiesAndSignatures(t *testing.T) {
	var failed atomic.Bool
	v := receive(t, "", func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Shouted") != "" && failed.CompareAndSwap(false, true) {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	o := trusting(v, "127.0.0.1/32")
	o.Formats = map[string]webhooks.Format{"shouted": shouted}
	h := open(t, o)
	ctx := t.Context()
	name := "shouted"
	w, secret, err := h.Create(ctx, alice, webhooks.Change{URL: &v.URL, Types: &shouted.Types, Format: &name})
	must(t, err)
	own, _ := h.create(alice, v.URL)
	h.happen(bob.Project, "another project's")
	h.happen(alice.Project, "quiet")
	h.happen(alice.Project, "one")
	h.done(alice, own.ID, 2)
	all := h.done(alice, w.ID, 1)
	if len(all) != 1 || all[0].Type != "SHOUT" || all[0].Attempts != 2 {
		t.Fatalf("got %+v", all)
	}
	_, next, err := h.Rotate(ctx, alice, w.ID, webhooks.DefaultGrace)
	must(t, err)
	h.end()
	h.begin() // the format is on record
	h.happen(alice.Project, "two")
	second := h.done(alice, w.ID, 2)[1]
	h.done(alice, own.ID, 3)
	var bodies, signed []string
	v.mu.Lock()
	for i, head := range v.heads {
		if s := head.Get("X-Shouted"); s != "" {
			bodies, signed = append(bodies, string(v.bodies[i])), append(signed, s)
			if head.Get(webhooks.SignatureHeader) != "" || head.Get("Sandpit-Event") != "" {
				t.Errorf("got %v", head)
			}
		}
	}
	v.mu.Unlock()
	if want := []string{`SHOUT "one"`, `SHOUT "one"`, `SHOUT "two"`}; !slices.Equal(bodies, want) {
		t.Errorf("got %q", bodies)
	}
	if want := []string{all[0].ID + " SHOUT " + secret, all[0].ID + " SHOUT " + secret, second.ID + " SHOUT " + next}; !slices.Equal(signed, want) {
		t.Errorf("got %q, want %q", signed, want)
	}

	for what, ch := range map[string]webhooks.Change{
		"a format that is none":        {URL: &v.URL, Format: new("whispered")},
		"the server's type in another": {URL: &v.URL, Format: &name, Types: &[]string{"volume.created"}},
		"another's type in its own":    {URL: &v.URL, Types: &shouted.Types},
	} {
		if _, _, err := h.Create(ctx, alice, ch); !fault.Is(err, fault.Invalid) || fault.As(err).Remedy == "" {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, err := h.Update(ctx, alice, w.ID, webhooks.Change{Types: &[]string{"volume.created"}}); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v", err)
	}
}

// TestAFormatThatIsGoneIsSentNothing: a server of another version has it on record.
func TestAFormatThatIsGoneIsSentNothing(t *testing.T) {
	v := receive(t, "", nil)
	h := open(t, trusting(v, "127.0.0.1/32"))
	must(t, h.db.Update(t.Context(), func(tx store.Tx) error {
		return tx.Webhooks().Insert(&store.Webhook{ID: "wh_x", Project: alice.Project, URL: v.URL, Format: "gone", CreatedAt: time.Now(), UpdatedAt: time.Now()})
	}))
	own, _ := h.create(alice, v.URL)
	h.happen(alice.Project, "one")
	h.done(alice, own.ID, 1)
	if all, err := h.Deliveries(t.Context(), alice, "wh_x", webhooks.Page{Limit: 10}); err != nil || len(all) != 0 {
		t.Errorf("got %+v, %v", all, err)
	}
}
