// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The operator chooses the readers of what concerns all projects, or the server.
func TestWhatIsPublicIsTheOperatorsChoice(t *testing.T) {
	i := newInstallation(t)
	shipped := i.cfg.Public
	var reader, boss string
	for _, c := range []struct {
		name   string
		public []string
		want   map[string][4]int // without a token, with one that may only read, with a project's administrator's, with the server's
	}{
		{"AsShipped", shipped, map[string][4]int{"/connect": {200, 200, 200, 200}, "/v1/openapi.json": {200, 200, 200, 200}, "/metrics": {401, 403, 403, 200}}},
		{"Nothing", nil, map[string][4]int{"/connect": {401, 403, 200, 200}, "/v1/openapi.json": {401, 200, 200, 200}, "/metrics": {401, 403, 403, 200}}},
		{"Metrics", []string{"metrics"}, map[string][4]int{"/connect": {401, 403, 200, 200}, "/v1/openapi.json": {401, 200, 200, 200}, "/metrics": {200, 200, 200, 200}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			i.cfg.Public = c.public
			url, stop, err := i.start(Adopt{})
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			b, err := os.ReadFile(filepath.Join(i.cfg.Data, "admin-token"))
			if err != nil {
				t.Fatal(err)
			}
			admin := strings.TrimSpace(string(b))
			ask := func(method, path, token, body string) *http.Response {
				req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				if token != "" {
					req.Header.Set("Authorization", "Bearer "+token)
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = resp.Body.Close() })
				return resp
			}
			if reader == "" {
				for scope, into := range map[string]*string{"sandboxes:read": &reader, "admin": &boss} {
					var made struct{ Token string }
					resp := ask("POST", "/v1/tokens", admin, `{"name":"with `+scope+`","scopes":["`+scope+`"]}`)
					if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || made.Token == "" {
						t.Fatalf("make a token: %s, %v", resp.Status, err)
					}
					*into = made.Token
				}
			}
			c.want["/api/v1/metrics"] = c.want["/metrics"]
			for path, want := range c.want {
				var got [4]int
				for n, token := range []string{"", reader, boss, admin} {
					got[n] = ask("GET", path, token, "").StatusCode
				}
				if got != want {
					t.Errorf("%s: got %v, want %v", path, got, want)
				}
			}
			for _, path := range []string{"/healthz", "/readyz", "/health", "/ready"} {
				if got := ask("GET", path, "", "").StatusCode; got != 200 {
					t.Errorf("%s: got %d, want 200", path, got)
				}
			}
		})
	}
}
