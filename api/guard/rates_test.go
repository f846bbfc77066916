// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
)

// named knows tokens by PROJECT/ID; the server's own is "server".
type named struct{}

func (named) Admit(_ context.Context, token string) (access.Caller, context.Context, func(), error) {
	project, id, ok := strings.Cut(token, "/")
	switch {
	case token == "server":
		return access.Caller{Project: "default", Actor: "admin-token", Scopes: []access.Scope{access.ServerAdmin}}, context.Background(), func() {}, nil
	case !ok:
		return access.Caller{}, nil, nil, fault.New(fault.Unauthenticated, "the bearer token is not valid")
	}
	return access.Caller{Project: project, Actor: id, TokenID: id, Scopes: []access.Scope{access.Admin}}, context.Background(), func() {}, nil
}

func TestRequestsAreLimited(t *testing.T) {
	start := func(t *testing.T, r guard.Rates, h http.HandlerFunc) func(token string) *http.Response {
		g, err := guard.New(guard.Options{Tokens: named{}, Requests: r})
		if err != nil {
			t.Fatal(err)
		}
		srv := httptest.NewServer(g.Wrap("rest", h))
		t.Cleanup(srv.Close)
		return func(token string) *http.Response {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = resp.Body.Close() })
			return resp
		}
	}
	refused := func(t *testing.T, resp *http.Response, says string) {
		t.Helper()
		b, err := io.ReadAll(resp.Body)
		after, aerr := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil || resp.StatusCode != 429 || aerr != nil || after < 1 || !strings.Contains(string(b), `"code":"exhausted"`) || !strings.Contains(string(b), says) {
			t.Errorf("got %s, Retry-After %q, %s, want 429 that says %q", resp.Status, resp.Header.Get("Retry-After"), b, says)
		}
	}
	ok := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	const slow = 1.0 / 3600 // nothing comes back during a test

	t.Run("ByToken", func(t *testing.T) {
		ask := start(t, guard.Rates{Token: slow}, ok)
		if got := ask("a/one"); got.StatusCode != 204 {
			t.Fatalf("the first: %s", got.Status)
		}
		refused(t, ask("a/one"), `the token \"one\" may begin 1 requests per hour`)
		for _, other := range []string{"a/two", "b/one"} {
			if got := ask(other); got.StatusCode != 204 {
				t.Errorf("%s: %s", other, got.Status)
			}
		}
		for range 5 {
			if got := ask("server"); got.StatusCode != 204 {
				t.Errorf("the server's own: %s", got.Status)
			}
		}
	})
	t.Run("ByProject", func(t *testing.T) {
		ask := start(t, guard.Rates{Project: slow}, ok)
		ask("a/one")
		refused(t, ask("a/two"), "the tokens of the project a together")
		if got := ask("b/one"); got.StatusCode != 204 {
			t.Errorf("another project: %s", got.Status)
		}
	})
	t.Run("ABurstIsTwoSeconds", func(t *testing.T) {
		ask := start(t, guard.Rates{Token: 10}, ok)
		for n := range 20 {
			if got := ask("a/one"); got.StatusCode != 204 {
				t.Fatalf("request %d: %s", n+1, got.Status)
			}
		}
	})
	t.Run("AsShippedThereIsNone", func(t *testing.T) {
		ask := start(t, guard.Rates{}, ok)
		for range 100 {
			if got := ask("a/one"); got.StatusCode != 204 {
				t.Fatal(got.Status)
			}
		}
	})
	t.Run("AStreamThatIsOpenGoesOn", func(t *testing.T) {
		more := make(chan string)
		ask := start(t, guard.Rates{Token: slow}, func(w http.ResponseWriter, r *http.Request) {
			for text := range more {
				_, _ = io.WriteString(w, text)
				_ = http.NewResponseController(w).Flush()
			}
		})
		go func() { more <- "first" }()
		stream := ask("a/one")
		refused(t, ask("a/one"), "the token")
		go func() { more <- " second"; close(more) }()
		if b, err := io.ReadAll(stream.Body); err != nil || string(b) != "first second" {
			t.Errorf("got %q, %v", b, err)
		}
	})
}
