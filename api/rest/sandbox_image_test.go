// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"net/http"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	"sandpit.dev/api/service"
	"sandpit.dev/image"
	"sandpit.dev/image/entry"
)

// gallery is a catalogue of two entries, and an image that others made.
type gallery struct{ builds }

// builds is what a test of lists asks for nothing.
type builds = service.Images

func (gallery) Images(context.Context, access.Caller) ([]image.Status, error) {
	return []image.Status{
		{Entry: image.Entry{Name: "python", Title: "Python", Packages: []entry.Package{{Tool: entry.Apt, Name: "jq"}, {Tool: entry.Apt, Name: "git"}}}, Default: true, State: image.Ready, Image: image.Image{SizeBytes: 7}},
		{Entry: image.Entry{Name: "lab", Title: "A lab", Base: "python", Packages: []entry.Package{{Tool: entry.Apt, Name: "git"}, {Tool: entry.Pip, Name: "polars"}}}, State: image.Missing},
		{Entry: image.Entry{Name: "debian:12", Title: "imported"}, State: image.Ready},
	}, nil
}

func TestImagesAsTheGatewayListsThem(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *rest.Options) { o.Services.Images = gallery{} })
	for path, want := range map[string]string{
		"/api/v1/sandbox-images": `{"items":[` +
			`{"id":"python","name":"python","display_name":"python","description":"Python","status":"ready","template":"python","is_default":true,"size_bytes":7},` +
			`{"id":"lab","name":"lab","display_name":"lab","description":"A lab","status":"missing","template":"lab","is_default":false,"size_bytes":0},` +
			`{"id":"debian:12","name":"debian:12","display_name":"debian:12","description":"imported","status":"ready","template":"","is_default":false,"size_bytes":0}]}`,
		"/api/v1/sandbox-images/templates": `{"templates":[` +
			`{"name":"python","display_name":"python","description":"Python","base_image":"","packages":["jq","git"],"package_count":2,"imported":true},` +
			`{"name":"lab","display_name":"lab","description":"A lab","base_image":"python","packages":["git","polars"],"package_count":2,"imported":false}]}`,
		"/api/v1/sandbox-images/packages": `{"categories":{"apt":["git","jq"],"pip":["polars"]}}`,
	} {
		if got := h.do("GET", path, nil); got.StatusCode != http.StatusOK || string(got.body) != want+"\n" && string(got.body) != want {
			t.Errorf("%s: %d %s\nwant %s", path, got.StatusCode, got.body, want)
		}
	}
}
