// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
)

// known are callers by their tokens.
type known map[string]access.Caller

func (k known) Admit(_ context.Context, token string) (access.Caller, context.Context, func(), error) {
	c, ok := k[token]
	if !ok {
		return access.Caller{}, nil, nil, fault.New(fault.Unauthenticated, "no")
	}
	return c, context.Background(), func() {}, nil
}

func TestARequestIsForTheProjectThatItNames(t *testing.T) {
	t.Parallel()
	g, err := guard.New(guard.Options{
		Tokens: known{
			"server": {Project: "default", Actor: "admin-token", Scopes: []access.Scope{access.Admin, access.ServerAdmin}},
			"boss":   {Project: "red", Actor: "boss", TokenID: "b", Scopes: []access.Scope{access.Admin}},
		},
		Project: func(_ context.Context, name string) error {
			if name != "red" {
				return fault.New(fault.NotFound, "there is no project %q", name)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var project string
	s := httptest.NewServer(g.Wrap("rest", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := guard.Caller(r.Context())
		if err != nil {
			t.Error(err)
		}
		project = c.Project
	})))
	t.Cleanup(s.Close)
	for _, c := range []struct {
		name, token string
		named       []string
		status      int
		project     string
	}{
		{"NoHeader", "server", nil, 200, "default"},
		{"Another", "server", []string{"red"}, 200, "red"},
		{"ItsOwn", "server", []string{"default"}, 200, "default"},
		{"NoneSuch", "server", []string{"blue"}, 404, ""},
		{"Empty", "server", []string{""}, 422, ""},
		{"Two", "server", []string{"red", "default"}, 422, ""},
		{"AList", "server", []string{"red,default"}, 422, ""},
		{"APath", "server", []string{"../red"}, 422, ""},
		{"Long", "server", []string{strings.Repeat("a", 64)}, 422, ""},
		{"AProjectsOwn", "boss", []string{"red"}, 200, "red"},
		{"AnotherOfAProjects", "boss", []string{"default"}, 403, ""},
		{"OneThatThereIsNotOfAProjects", "boss", []string{"blue"}, 403, ""}, // it learns nothing of that
	} {
		project = ""
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+c.token)
		for _, v := range c.named {
			req.Header.Add(guard.ProjectHeader, v)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != c.status || project != c.project {
			t.Errorf("%s: %s in %q, want %d in %q", c.name, res.Status, project, c.status, c.project)
		}
	}
}
