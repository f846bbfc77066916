// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"testing"
	"time"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/ports"
	"sandpit.dev/fault"
	"sandpit.dev/store"
)

func TestLinksToPortsAreListedAndRevoked(t *testing.T) {
	t.Parallel()
	h := open(t)
	s, other := h.create(), h.create()
	at := "/v1/sandboxes/" + s.ID + "/preview-links"
	first := want[v1.PreviewLink](h, 201, "POST", at, object{"port": 8000})
	if first.SandboxID != s.ID || first.Port != 8000 || first.URL != "http://8000-token-of-"+first.ID+".test/" || first.ExpiresAt != nil || first.CreatedBy != "admin-token" {
		t.Errorf("got %+v", first)
	}
	second := want[v1.PreviewLink](h, 201, "POST", at, object{"port": 80, "expires_seconds": 60})
	if second.ExpiresAt == nil || time.Until(*second.ExpiresAt) > 62*time.Second {
		t.Errorf("got %+v", second)
	}
	// One that expired is not among them, and makes room.
	must(t, h.store.Update(t.Context(), func(tx store.Tx) error {
		return tx.PreviewLinks().Insert(&ports.Link{ID: "expired", Sandbox: "gone", Project: "default", Port: 1, ExpiresAt: time.Unix(1, 0)})
	}))
	list := want[v1.PreviewLinkList](h, 200, "GET", at, nil)
	if len(list.Items) != 2 || list.Items[0] != first && list.Items[0].ID != first.ID || list.Items[1].ID != second.ID || list.Items[0].Token != first.Token {
		t.Errorf("got %+v", list)
	}
	for name, body := range map[string]object{
		"port": {}, "a port of 65536": {"port": 65536}, "no time": {"port": 80, "expires_seconds": 0}, "a long time": {"port": 80, "expires_seconds": int64(1) << 62},
	} {
		if p := want[v1.Problem](h, 422, "POST", at, body); len(p.Errors) != 1 {
			t.Errorf("%s: got %+v", name, p)
		}
	}
	reader, strange := h.as("default", access.SandboxesRead), h.as("strange")
	want[v1.Problem](reader, 403, "GET", at, nil)
	want[v1.Problem](reader, 403, "DELETE", at+"/"+first.ID, nil)
	want[v1.Problem](strange, 404, "GET", at, nil)
	want[v1.Problem](strange, 404, "DELETE", at+"/"+first.ID, nil)
	want[v1.Problem](h, 404, "DELETE", "/v1/sandboxes/"+other.ID+"/preview-links/"+first.ID, nil)
	want[v1.Problem](h, 404, "DELETE", at+"/none", nil)
	if got := want[v1.PreviewLinkList](h, 200, "GET", at, nil); len(got.Items) != 2 {
		t.Errorf("what was refused revoked one: %+v", got)
	}
	if a := h.do("DELETE", at+"/"+first.ID, nil); a.StatusCode != 204 {
		t.Errorf("got %s", a.Status)
	}
	want[v1.Problem](h, 404, "DELETE", at+"/"+first.ID, nil)
	if got := want[v1.PreviewLinkList](h, 200, "GET", at, nil); len(got.Items) != 1 || got.Items[0].ID != second.ID {
		t.Errorf("got %+v", got)
	}
	page := want[v1.EventPage](h, 200, "GET", "/v1/sandboxes/"+s.ID+"/activity?type=preview.revoked", nil)
	if len(page.Items) != 1 {
		t.Errorf("the activity has %+v", page.Items)
	}
	// A sandbox has a bound of them, and takes them along.
	for range ports.MaxLinks - 1 {
		want[v1.PreviewLink](h, 201, "POST", at, object{"port": 80})
	}
	if p := want[v1.Problem](h, 429, "POST", at, object{"port": 80}); p.Code != string(fault.Exhausted) {
		t.Errorf("got %+v", p)
	}
	if a := h.do("DELETE", "/v1/sandboxes/"+s.ID, nil); a.StatusCode != 204 {
		t.Errorf("got %s", a.Status)
	}
	must(t, h.store.View(t.Context(), func(tx store.Tx) error {
		_, err := tx.PreviewLinks().Get(second.ID)
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("a deleted sandbox's link is there: %v", err)
		}
		return nil
	}))
}
