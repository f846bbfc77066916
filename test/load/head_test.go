// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
)

// What a request says before anybody knows whose it is has a bound, and the longest path of a
// file is within it.
func TestTheHeadOfARequestHasABound(t *testing.T) {
	h := open(t)
	box, _, err := h.client.Create(t.Context(), v1.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	deep := "/workspace/" + strings.Repeat(strings.Repeat("é", 100)+"/", 20) // 4,031 bytes
	for _, c := range []struct {
		name, path string
		want       int
	}{
		{"a path of 60,000 bytes", "/" + strings.Repeat("A", 60_000), http.StatusRequestHeaderFieldsTooLarge},
		{"a file's path of 4,000 bytes, each as three", "/v1/sandboxes/" + box.ID + "/stat?path=" + url.QueryEscape(deep), http.StatusNotFound},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+c.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+h.token)
		resp, err := h.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: %s, want %d: %.200s", c.name, resp.Status, c.want, body)
		}
	}
}
