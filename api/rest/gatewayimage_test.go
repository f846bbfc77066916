// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/images"
)

func TestImagesAsTheGatewayAdministersThem(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	h := open(t, func(o *rest.Options) { o.Services.Keeper = s })
	const at = "/api/v1/admin/sandbox-images/python"
	// The pool of the image has one of 1 to 3 ready, the one that follows the creates two.
	if got, want := h.do("GET", at+"/pool", nil), `{"image_id":"python","image_name":"python","warm_pool_min":1,"warm_pool_max":3,"idle_count":3,"provider":"memory"}`; strings.TrimSpace(string(got.body)) != want {
		t.Errorf("%d %s, want %s", got.StatusCode, got.body, want)
	}
	if got := h.do("DELETE", at, nil); got.StatusCode != http.StatusConflict {
		t.Errorf("one that is in use: %d %s", got.StatusCode, got.body)
	}
	if got := want[v1.ImageDeletion](h, http.StatusOK, "DELETE", at+"?force=true", nil); got.Name != "python" || len(got.Digests) != 1 || got.Users.SandboxCount != 2 {
		t.Errorf("by force: %+v", got)
	}
	asked := []any{"python", images.Deletion{Name: "python"}, images.Deletion{Name: "python", Force: true}}
	if !slices.Equal(s.asked, asked) {
		t.Errorf("asked was %+v, want %+v", s.asked, asked)
	}
	// A project's own administrator learns nothing, and deletes nothing.
	third := h.as("third", access.Admin)
	for _, r := range [][2]string{{"GET", at + "/pool"}, {"DELETE", at + "?force=true"}} {
		if got := third.do(r[0], r[1], nil); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s as a project's: %d %s", r[0], got.StatusCode, got.body)
		}
	}
	if len(s.asked) != len(asked) {
		t.Errorf("a project's administrator reached the images: %+v", s.asked[len(asked):])
	}
	if got := open(t).do("GET", at+"/pool", nil); got.StatusCode != http.StatusNotImplemented {
		t.Errorf("without a keeper: %d %s", got.StatusCode, got.body)
	}
}

func TestPoolsAsTheGatewaySwitchesThem(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	h := open(t, func(o *rest.Options) { o.Services.Keeper = s })
	of := func() v1.Setting {
		all := want[v1.SettingList](h, http.StatusOK, "GET", "/v1/settings", nil).Items
		return all[slices.IndexFunc(all, func(s v1.Setting) bool { return s.Name == "pools_enabled" })]
	}
	want[v1.SandboxSettings](h, http.StatusOK, "PATCH", "/api/v1/settings/sandbox", `{"warm_pool_enabled": false}`)
	if got := of(); got.Value != false || got.Source != "set" || got.Holds != "all" || len(s.asked) != 0 {
		t.Errorf("off: %+v, and asked was %+v", got, s.asked)
	}
	// Where no pool keeps anything, the default image's does from then on.
	want[v1.SandboxSettings](h, http.StatusOK, "PATCH", "/api/v1/settings/sandbox", `{"warm_pool_enabled": true}`)
	if got := of(); got.Value != true || len(s.asked) == 0 {
		t.Fatalf("on: %+v, and asked was %+v", got, s.asked)
	}
	if c, ok := s.asked[0].(images.PoolChange); !ok || c.Image != "" || c.Min == nil || *c.Min < 1 {
		t.Errorf("asked was %+v", s.asked[0])
	}
	if a := h.do("PATCH", "/api/v1/settings/sandbox", `{"warm_pool_enabled": "yes"}`); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("neither on nor off: %s %s", a.Status, a.body)
	}
}
