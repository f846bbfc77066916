// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/fault"
)

// imageServer answers the list of images with one state after another, and then
// with the last for ever.
func imageServer(t *testing.T, states ...v1.Image) *client.Client {
	t.Helper()
	var mu sync.Mutex
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		img := states[min(n, len(states)-1)]
		n++
		img.Name, img.Default = "python", true
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v1.ImageList{Items: []v1.Image{img}}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return client.New(s.URL, "token", client.Options{})
}

func TestWatchingABuild(t *testing.T) {
	building := func(part float64, text string) v1.Image {
		return v1.Image{Status: "building", Progress: &part, Text: text}
	}
	t.Run("TellsInLinesHowFarItIs", func(t *testing.T) {
		var shown bytes.Buffer
		a := &app.App{Stderr: &shown}
		cl := imageServer(t, building(0.25, "unpacking"), building(0.26, "unpacking"), building(0.9, "installing\x1b[2J"), v1.Image{Status: "ready", SizeBytes: 7})
		img, err := Watch(t.Context(), a, cl, "")
		if err != nil {
			t.Fatal(err)
		}
		if img.SizeBytes != 7 {
			t.Errorf("got %+v, not the image that is ready", img)
		}
		want := "image python:  25% unpacking\nimage python:  90% installing\\u001b[2J\n"
		if shown.String() != want {
			t.Errorf("got\n%s\nwant\n%s", shown.String(), want)
		}
	})
	t.Run("SaysWhyItFailed", func(t *testing.T) {
		var shown bytes.Buffer
		a := &app.App{Stderr: &shown}
		cl := imageServer(t, v1.Image{Status: "failed", Error: "no space left", Output: []string{"E: cannot write"}})
		_, err := Watch(t.Context(), a, cl, "python")
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("got %v, want what failed", err)
		}
		if !strings.Contains(shown.String(), "E: cannot write") {
			t.Errorf("got %q, without the last output", shown.String())
		}
	})
	t.Run("OfAnUnknownImageNamesThoseThatThereAre", func(t *testing.T) {
		cl := imageServer(t, v1.Image{Status: "ready"})
		_, err := Named(t.Context(), cl, "nope")
		if e := fault.As(err); e.Code != fault.NotFound || !strings.Contains(e.Remedy, "python") {
			t.Errorf("got %v (%s), want not_found and a list", err, e.Remedy)
		}
	})
}
