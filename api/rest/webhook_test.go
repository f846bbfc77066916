// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/engine/events"
	"sandpit.dev/internal/seal"
	"sandpit.dev/webhooks"
)

// hooked returns a house with webhooks, which may reach a server with TLS on this host.
func hooked(t *testing.T, receiver *httptest.Server) *house {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(receiver.Certificate())
	ring, err := seal.Parse(seal.Generate())
	must(t, err)
	h := open(t)
	s := webhooks.New(h.store, h.made.Services.Events.(*events.Log), webhooks.Options{
		Ring: ring, Body: shape.Event, TLS: &tls.Config{RootCAs: pool}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	o := h.made
	o.Services.Webhooks = s
	return h.serve(o)
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	type sent struct {
		head http.Header
		body []byte
	}
	got := make(chan sent, 100)
	v := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- sent{r.Header, b}
	}))
	t.Cleanup(v.Close)
	h := hooked(t, v)
	stream := h.listen("/v1/events?type=sandbox.started")
	stream.next()
	w := want[v1.Webhook](h, 201, "POST", "/v1/webhooks", object{"url": v.URL, "types": []string{"sandbox.started"}, "description": "ours"})
	if w.Secret == "" || w.Status != "enabled" || w.CreatedBy == "" {
		t.Errorf("got %+v", w)
	}
	if w.Format != "sandpit" {
		t.Errorf("got the format %s", w.Format)
	}
	other := want[v1.Webhook](h, 201, "POST", "/v1/webhooks", object{"url": v.URL, "format": "sandpit"})
	want[any](h, 204, "DELETE", "/v1/webhooks/"+other.ID, nil)
	if p := want[v1.Problem](h, 422, "POST", "/v1/webhooks", object{"url": v.URL, "format": "unknown"}); len(p.Errors) != 1 || p.Errors[0].Field != "format" || !strings.Contains(p.Remedy, "sandpit") {
		t.Errorf("got %+v", p)
	}
	want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "work", "env": object{"TOKEN": "value-of-a-variable"}})
	e := stream.next()
	d := <-got
	if string(d.body) != e["data"] || strings.Contains(string(d.body), "value-of-a-variable") {
		t.Errorf("got %s, and in the stream %s", d.body, e["data"])
	}
	must(t, client.VerifyWebhook(d.head.Get(client.WebhookSignature), d.body, w.Secret, time.Minute))
	for name, err := range map[string]error{
		"another body":   client.VerifyWebhook(d.head.Get(client.WebhookSignature), append(d.body, ' '), w.Secret, time.Minute),
		"another secret": client.VerifyWebhook(d.head.Get(client.WebhookSignature), d.body, w.Secret+"x", time.Minute),
		"another time":   client.VerifyWebhook("t=1"+d.head.Get(client.WebhookSignature)[2:], d.body, w.Secret, 1<<62),
		"an old one":     client.VerifyWebhook(webhooks.Sign(time.Now().Add(-time.Hour), d.body, w.Secret), d.body, w.Secret, time.Minute),
		"none":           client.VerifyWebhook("", d.body, w.Secret, time.Minute),
	} {
		if err == nil {
			t.Errorf("%s: it verifies", name)
		}
	}
	path := "/v1/webhooks/" + w.ID
	one := want[v1.Webhook](h, 200, "GET", path, nil)
	all := want[v1.WebhookList](h, 200, "GET", "/v1/webhooks", nil)
	if one.Secret != "" || len(all.Items) != 1 || all.Items[0].Secret != "" {
		t.Errorf("got %+v and %+v", one, all)
	}
	var page v1.WebhookDeliveryPage
	for page = want[v1.WebhookDeliveryPage](h, 200, "GET", path+"/deliveries?status=delivered&limit=1", nil); len(page.Items) == 0; {
		page = want[v1.WebhookDeliveryPage](h, 200, "GET", path+"/deliveries?status=delivered&limit=1", nil)
	}
	if p := page.Items[0]; p.EventID != e["id"] || p.Attempts != 1 || *p.ResponseCode != 200 || p.DoneAt == nil || p.NextAt != nil || page.NextCursor == nil {
		t.Errorf("got %+v", page)
	}
	again := want[v1.WebhookDelivery](h, 202, "POST", path+"/deliveries/"+page.Items[0].ID+"/repeat", nil)
	if r := <-got; string(r.body) != string(d.body) || *again.Repeats != page.Items[0].ID || r.head.Get("Sandpit-Delivery") != again.ID {
		t.Errorf("got %+v and %s", again, r.body)
	}
	next := want[v1.Webhook](h, 200, "POST", path+"/rotate", object{"grace_seconds": 60})
	if next.Secret == "" || next.Secret == w.Secret || next.OldSecret == nil {
		t.Errorf("got %+v", next)
	}
	off := want[v1.Webhook](h, 200, "PATCH", path, object{"enabled": false, "types": []string{}})
	if off.Status != "disabled" || len(off.Types) != 0 || off.DisabledAt == nil {
		t.Errorf("got %+v", off)
	}
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		words        string
	}{
		{"POST", "/v1/webhooks", object{"url": "https://127.0.0.2/"}, 422, "not of the public internet"},
		{"POST", "/v1/webhooks", object{"url": "http://hooks.example.org"}, 422, "without https"},
		{"POST", "/v1/webhooks", object{}, 422, "url"},
		{"POST", "/v1/webhooks", object{"url": v.URL, "types": []string{"exec"}}, 422, "no type of event"},
		{"PATCH", path, object{"url": "https://[::1]/"}, 422, "not of the public internet"},
		{"POST", path + "/rotate", object{"grace_seconds": -1}, 422, "grace_seconds"},
		{"POST", path + "/deliveries/" + again.ID + "/repeat", nil, 409, "switched off"},
		{"POST", path + "/deliveries/nosuch/repeat", nil, 404, "no delivery"},
		{"GET", path + "/deliveries?status=x", nil, 422, "none of"},
		{"GET", path + "/deliveries?limit=1000", nil, 422, "limit"},
		{"GET", path + "/deliveries?cursor=x", nil, 422, "cursor"},
		{"GET", "/v1/webhooks/nosuch", nil, 404, "nosuch"},
	} {
		if a := h.do(c.method, c.path, c.body); a.StatusCode != c.status || !strings.Contains(string(a.body), c.words) {
			t.Errorf("%s %s: got %d %s", c.method, c.path, a.StatusCode, a.body)
		}
	}
	if a := h.as("default", access.SandboxesRead, access.SandboxesWrite).do("GET", "/v1/webhooks", nil); a.StatusCode != 403 {
		t.Errorf("without the scope: got %d", a.StatusCode)
	}
	if a := h.as("bobs", access.Admin).do("GET", path, nil); a.StatusCode != 404 {
		t.Errorf("of another project: got %d", a.StatusCode)
	}
	want[any](h, 204, "DELETE", path, nil)
	if a := h.do("GET", path, nil); a.StatusCode != 404 {
		t.Errorf("after its end: got %d", a.StatusCode)
	}
	none := open(t, func(o *rest.Options) { o.Services.Webhooks, o.Services.Events = nil, nil })
	for _, p := range []string{"/v1/webhooks", "/v1/events"} {
		if a := none.do("GET", p, nil); a.StatusCode != 501 {
			t.Errorf("%s where there is none: got %d %s", p, a.StatusCode, a.body)
		}
	}
}
