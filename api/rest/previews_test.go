// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
)

func TestWhoMaySeePortsAndWhatProgramsSee(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.create()
	at := "/v1/sandboxes/" + s.ID + "/previews"
	private := v1.Previews{Access: "private", PublicPorts: []int{}, Host: "own"}
	if got := want[v1.Previews](h, 200, "GET", at, nil); !cmp.Equal(got, private) {
		t.Errorf("got %+v", got)
	}
	for _, body := range []object{{"access": "public"}, {"public_ports": []int{80}}} {
		want[v1.Problem](h, 403, "PATCH", at, body) // as shipped
		want[v1.Problem](h, 403, "POST", "/v1/sandboxes", object{"previews": body, "key": "public"})
	}
	if a := h.do("GET", "/v1/sandboxes/public", nil); a.StatusCode != 404 {
		t.Errorf("what was refused made a sandbox: %s", a.Status)
	}
	if got := want[v1.Previews](h, 200, "PATCH", at, object{"host": "localhost"}); got.Host != "localhost" || got.PublicAllowed {
		t.Errorf("got %+v", got)
	}
}

func TestASandboxMayHaveATokenForItsPorts(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "with", "previews": object{"token": true}})
	at := "/v1/sandboxes/with/previews"
	token := func(p v1.Previews) string {
		t.Helper()
		if p.Access != "private" || p.Token == nil {
			t.Fatalf("got %+v", p)
		}
		return *p.Token
	}
	first := token(want[v1.Previews](h, 200, "GET", at, nil))
	if key, ok := strings.CutPrefix(first, "default "+s.ID+" "); !ok || len(key) < 20 {
		t.Errorf("got %s", first)
	}
	if again := token(want[v1.Previews](h, 200, "PATCH", at, object{"token": true, "host": "localhost"})); again != first {
		t.Errorf("got %s, had %s", again, first)
	}
	want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes", object{"key": "with", "previews": object{"token": true}})
	if again := token(want[v1.Previews](h, 200, "GET", at, nil)); again != first {
		t.Errorf("after a create by its key: got %s, had %s", again, first)
	}
	if p := want[v1.Previews](h.as("default", access.SandboxesRead), 200, "GET", at, nil); p.Token != nil {
		t.Errorf("who only reads is told %s", *p.Token)
	}
	fork := want[v1.SandboxList](h, 201, "POST", "/v1/sandboxes/with/fork", object{}).Items[0]
	if p := want[v1.Previews](h, 200, "GET", "/v1/sandboxes/"+fork.ID+"/previews", nil); p.Token != nil {
		t.Errorf("a fork has %s", *p.Token)
	}
	if p := want[v1.Previews](h, 200, "PATCH", at, object{"token": false}); p.Token != nil {
		t.Errorf("got %s", *p.Token)
	}
	if another := token(want[v1.Previews](h, 200, "PATCH", at, object{"token": true})); another == first {
		t.Errorf("one that was taken back is good again: %s", another)
	}
	want[v1.Problem](h.as("default", access.SandboxesRead), 403, "PATCH", at, object{"token": false})
}

func TestPublicPreviewsWhereTheServerAllowsThem(t *testing.T) {
	t.Parallel()
	h := open(t)
	want[v1.SettingList](h, 200, "PATCH", "/v1/settings", object{"max_previews": "public"})
	made := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "shop", "previews": object{"public_ports": []int{81, 80, 81}, "host": "shop.example:81"}})
	at := "/v1/sandboxes/" + made.ID + "/previews"
	some := v1.Previews{Access: "private", PublicPorts: []int{80, 81}, Host: "shop.example:81", PublicAllowed: true}
	holds := func(what string, got, want v1.Previews) {
		t.Helper()
		if !cmp.Equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	get := func() v1.Previews { t.Helper(); return want[v1.Previews](h, 200, "GET", at, nil) }
	holds("as created", get(), some)
	want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes", object{"key": "shop", "previews": object{"access": "public"}})
	holds("after a create by its key", get(), some)
	all := v1.Previews{Access: "public", PublicPorts: []int{}, Host: "shop.example:81", PublicAllowed: true}
	holds("public", want[v1.Previews](h, 200, "PATCH", at, object{"access": "public"}), all)
	holds("public", get(), all)
	// A fork, and a sandbox of a snapshot, are nobody's to see; a fork's programs see the same host.
	fork := want[v1.SandboxList](h, 201, "POST", "/v1/sandboxes/shop/fork", object{}).Items[0]
	holds("a fork", want[v1.Previews](h, 200, "GET", "/v1/sandboxes/"+fork.ID+"/previews", nil), v1.Previews{Access: "private", PublicPorts: []int{}, Host: "shop.example:81", PublicAllowed: true})
	snap := want[v1.Snapshot](h, 201, "POST", "/v1/sandboxes/shop/snapshots", object{})
	again := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"from_snapshot": snap.ID})
	holds("of a snapshot", want[v1.Previews](h, 200, "GET", "/v1/sandboxes/"+again.ID+"/previews", nil), v1.Previews{Access: "private", PublicPorts: []int{}, Host: "own", PublicAllowed: true})
	// Whoever may only look cannot change it, and a token of another sandbox neither.
	want[v1.Problem](h.as("default", access.SandboxesRead), 403, "PATCH", at, object{"access": "private"})

	want[v1.SettingList](h, 200, "PATCH", "/v1/settings", object{"max_previews": "private"})
	all.PublicAllowed = false
	holds("where it is not allowed any more", get(), all)
	want[v1.Problem](h, 403, "PATCH", at, object{"public_ports": []int{80}})
	all.Host = "own"
	holds("another host", want[v1.Previews](h, 200, "PATCH", at, object{"host": "own"}), all)
	holds("private", want[v1.Previews](h, 200, "PATCH", at, object{"access": "private"}), v1.Previews{Access: "private", PublicPorts: []int{}, Host: "own"})
	page := want[v1.EventPage](h, 200, "GET", "/v1/sandboxes/shop/activity?type=previews.changed", nil)
	if len(page.Items) != 3 {
		t.Errorf("the activity has %+v", page.Items)
	}
}

func TestBadRequestsAboutPreviews(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.create()
	at := "/v1/sandboxes/" + s.ID + "/previews"
	for name, c := range map[string]struct {
		body  object
		field string
	}{
		"an unknown word": {object{"access": "open"}, "access"}, "a port of 0": {object{"public_ports": []int{0}}, "public_ports"},
		"an empty host": {object{"host": ""}, "host"}, "a host in upper case": {object{"host": "App.example"}, "host"}, "a host with a path": {object{"host": "a/b"}, "host"},
		"a host of two lines": {object{"host": "a\r\nX: y"}, "host"}, "a long host": {object{"host": strings.Repeat("a.", 200) + "a"}, "host"}, "an odd port": {object{"host": "a:b"}, "host"},
	} {
		if p := want[v1.Problem](h, 422, "PATCH", at, c.body); len(p.Errors) == 0 || p.Errors[0].Field != c.field {
			t.Errorf("%s: got %+v", name, p)
		}
	}
	for name, c := range map[string]struct {
		body  object
		field string
	}{
		"an odd word": {object{"access": "open"}, "previews.access"}, "a port of 65536": {object{"public_ports": []int{65536}}, "previews.public_ports"},
		"many ports": {object{"public_ports": slices.Repeat([]int{80}, 65)}, "previews.public_ports"}, "a host of a control byte": {object{"host": "a\x00"}, "previews.host"},
	} {
		if p := want[v1.Problem](h, 422, "POST", "/v1/sandboxes", object{"previews": c.body, "key": "bad"}); len(p.Errors) == 0 || p.Errors[0].Field != c.field {
			t.Errorf("a create with %s: got %+v", name, p)
		}
	}
	if a := h.do("GET", "/v1/sandboxes/bad", nil); a.StatusCode != 404 {
		t.Errorf("what was refused made a sandbox: %s", a.Status)
	}
	want[v1.Problem](h.as("default", access.SandboxesRead), 403, "PATCH", at, object{"host": "own"})
	want[v1.Problem](h.as("strange"), 404, "PATCH", at, object{"host": "own"})
	want[v1.Problem](h.as("strange"), 404, "GET", at, nil)
}
