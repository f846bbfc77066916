// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

func TestFollowEventsGoesOnWhereTheConnectionBreaks(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	target, err := url.Parse(h.url)
	must(t, err)
	proxy := httptest.NewServer(httputil.NewSingleHostReverseProxy(target))
	defer proxy.Close()
	enough := errors.New("enough")
	var got []string
	begun := 0
	err = client.New(proxy.URL, adminToken, client.Options{HTTP: &http.Client{Transport: new(http.Transport)}}).FollowEvents(ctx, client.EventsQuery{
		Types: []string{"volume"},
		Begun: func(string) {
			if begun++; begun == 1 {
				_, err := h.CreateVolume(ctx, v1.CreateVolume{Name: "one"})
				must(t, err)
			}
		},
	}, func(e *v1.ProjectEvent) error {
		got = append(got, e.Type+" "+e.Volume().Name)
		switch len(got) {
		case 1:
			proxy.CloseClientConnections()
		case 2:
			must(t, h.DeleteVolume(ctx, "one"))
			proxy.CloseClientConnections()
		case 4:
			return enough
		}
		return nil
	})
	if want := []string{"volume.created one", "volume.ready one", "volume.updated one", "volume.deleted one"}; !errors.Is(err, enough) || !slices.Equal(got, want) || begun < 2 {
		t.Errorf("got %v and %v, begun %d times", got, err, begun)
	}
	var all int
	must(t, h.FollowEvents(ctx, client.EventsQuery{After: client.AllEvents, Once: true}, func(*v1.ProjectEvent) error { all++; return nil }))
	if all != 4 {
		t.Errorf("of all that are kept: got %d", all)
	}
}

func TestFollowEventsTellsOfAGap(t *testing.T) {
	h := open(t)
	none := func(*v1.ProjectEvent) error { t.Error("an event"); return nil }
	wantCode(t, h.FollowEvents(t.Context(), client.EventsQuery{After: "7-x", Once: true}, none), fault.Conflict)
	wantCode(t, h.FollowEvents(t.Context(), client.EventsQuery{Types: []string{"exec"}}, none), fault.Invalid)
	var reason string
	must(t, h.FollowEvents(t.Context(), client.EventsQuery{After: "7-x", Once: true, Reset: func(p v1.EventsPosition) error { reason = p.Reason; return nil }}, none))
	if reason != "unknown_id" {
		t.Errorf("got %q", reason)
	}
}
