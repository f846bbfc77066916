// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/test/browser"
)

// bound is how long one step in the browser may take: far more than it does.
const bound = 2 * time.Minute

//go:embed testdata/page.html
var page string

// needBrowser returns the browser, and skips a test where there can be none.
func needBrowser(t *testing.T) browser.Program {
	t.Helper()
	skiptest.WithShort(t, "a browser is fetched")
	p, err := browser.Get(t.Context(), browser.Dir())
	if e, ok := errors.AsType[browser.Absent](err); ok {
		t.Skip(e.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Flags = map[string]any{"host-resolver-rules": noWayOut}
	return p
}

// noWayOut has the browser reach this machine alone: for every other name, and every other address, there is none.
const noWayOut = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE *.localhost"

// sight is what a page can see of an answer.
type sight struct {
	Status  int
	Type    string
	Headers map[string]string
	Text    string
	Error   string
}

// is reports whether a page could read the answer.
func (s sight) is(status int) bool { return s.Status == status && s.Error == "" && s.Type == "cors" }

// refused reports whether the browser kept all of the answer from the page.
func (s sight) refused() bool { return s.Status == 0 && strings.Contains(s.Error, "TypeError") }

// site serves the page, from an origin of its own.
func site(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page) // the browser went away
	}))
	t.Cleanup(s.Close)
	return s
}

// preflights are the requests by which a browser asked what its page may send.
type preflights struct {
	mu  sync.Mutex
	all []*network.Request
}

func (p *preflights) hear(event any) {
	if e, ok := event.(*network.EventRequestWillBeSent); ok && e.Request.Method == http.MethodOptions {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all = append(p.all, e.Request)
	}
}

// tab opens the browser at an address.
func tab(t *testing.T, p browser.Program, address string, hear func(any)) context.Context {
	t.Helper()
	ctx, done, err := p.Open(t.Context(), t.TempDir(), hear)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	if err := browser.Visit(ctx, address); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// await evaluates an expression in the page.
func await[T any](t *testing.T, tab context.Context, format string, args ...any) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab, bound)
	defer cancel()
	out, err := browser.Await[T](ctx, fmt.Sprintf(format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDebiansChromiumRuns(t *testing.T) {
	p := needBrowser(t)
	if !strings.HasPrefix(p.Version, "Chromium ") {
		t.Errorf("it says that it is %q", p.Version)
	}
	s := site(t)
	ctx := tab(t, p, s.URL, nil)
	for _, way := range []string{"http://example.org/", "http://192.0.2.1/", "http://[2001:db8::1]/"} {
		if got := await[string](t, ctx, `fetch(%q, {mode: "no-cors"}).then(() => "answered", e => e.name)`, way); got != "TypeError" {
			t.Errorf("%s: %s", way, got)
		}
	}
	if got := await[string](t, ctx, "document.title + ' ' + location.origin"); got != "a page of another origin "+s.URL {
		t.Errorf("the page has %q", got)
	}
	if png, err := browser.Picture(ctx); err != nil || !strings.HasPrefix(string(png), "\x89PNG") {
		t.Errorf("its picture: %d bytes, %v", len(png), err)
	}
}

func TestAPageOfAnotherOriginDrivesTheServer(t *testing.T) {
	p := needBrowser(t)
	pages, strangers := site(t), site(t)
	s := serve(t, fmt.Sprintf("origins: [%q]\n", pages.URL))
	var asked preflights
	allowed := tab(t, p, pages.URL, asked.hear)

	t.Run("REST", func(t *testing.T) {
		steps := await[map[string]sight](t, allowed, "rest(%q, %q)", s.url, s.token)
		for name, status := range map[string]int{"create": 201, "exec": 200, "write": 204, "read": 206, "change": 200, "none": 404, "remove": 204, "gone": 404} {
			got := steps[name]
			if !got.is(status) {
				t.Errorf("%s: got %+v, want %d", name, got, status)
			}
			if got.Headers["x-request-id"] == "" {
				t.Errorf("%s: the page cannot read X-Request-Id: %v", name, got.Headers)
			}
		}
		if !strings.HasPrefix(steps["create"].Headers["location"], "/v1/sandboxes/") || !strings.Contains(steps["exec"].Text, "from a page") || !strings.Contains(steps["change"].Text, "of-a-page") {
			t.Errorf("got %+v", steps)
		}
		if got := steps["read"]; got.Text != "grü" || !strings.HasPrefix(got.Headers["content-range"], "bytes 0-3/7") {
			t.Errorf("the file: %+v", got)
		}
		asked.mu.Lock()
		defer asked.mu.Unlock()
		if len(asked.all) == 0 {
			t.Error("the browser asked nothing before")
		}
		for _, r := range asked.all {
			for name := range r.Headers {
				if strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Cookie") {
					t.Errorf("%s %s has the header %s", r.Method, r.URL, name)
				}
			}
		}
	})
	t.Run("MCP", func(t *testing.T) {
		steps := await[map[string]sight](t, allowed, "mcp(%q, %q)", s.url, s.token)
		for name, status := range map[string]int{"initialize": 200, "initialized": 202, "list": 200, "call": 200, "end": 204, "modern": 200} {
			if got := steps[name]; !got.is(status) {
				t.Errorf("%s: got %+v, want %d", name, got, status)
			}
		}
		if steps["session"].Text == "" || !strings.Contains(steps["list"].Text, `"run_command"`) || !strings.Contains(steps["call"].Text, "called by a page") || !strings.Contains(steps["modern"].Text, `"run_command"`) {
			t.Errorf("got %+v", steps)
		}
	})
	t.Run("ARefusalCanBeRead", func(t *testing.T) {
		got := await[sight](t, allowed, "see(%q, {headers: sign(%q)})", s.url+"/v1/whoami", "spt_wrong")
		if !got.is(401) || !strings.Contains(got.Headers["www-authenticate"], "Bearer") || !strings.Contains(got.Text, "unauthenticated") {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("CookiesAreNeverAllowed", func(t *testing.T) {
		for _, init := range []string{`{credentials: "include", headers: sign(%q)}`, `{credentials: "include", method: "POST", headers: sign(%q, json), body: "{}"}`} {
			if got := await[sight](t, allowed, "see(%q, "+init+")", s.url+"/v1/sandboxes", s.token); !got.refused() {
				t.Errorf("%s: the page reads %+v", init, got)
			}
		}
	})
	t.Run("HeadersOfNobodysAreNot", func(t *testing.T) {
		if got := await[sight](t, allowed, `see(%q, {headers: sign(%q, {"X-Evil": "1"})})`, s.url+"/v1/whoami", s.token); !got.refused() {
			t.Errorf("the page reads %+v", got)
		}
		if got := await[sight](t, allowed, `see(%q, {headers: sign(%q, {"X-Sandpit-Project": "default"})})`, s.url+"/v1/whoami", s.token); !got.is(200) {
			t.Errorf("the project's: %+v", got)
		}
	})

	// What is left is of the page that called a tool; pages of other origins make nothing and end nothing.
	before := strings.Join(s.sandboxes(t), " ")
	for name, address := range map[string]string{"AnotherPort": strangers.URL, "AnotherNameOfTheSameHost": strings.Replace(pages.URL, "127.0.0.1", "localhost", 1)} {
		t.Run(name, func(t *testing.T) {
			stranger := tab(t, p, address, nil)
			for step, got := range await[map[string]sight](t, stranger, "rest(%q, %q)", s.url, s.token) {
				if !got.refused() {
					t.Errorf("%s: the page reads %+v", step, got)
				}
			}
			for step, got := range await[map[string]sight](t, stranger, "mcp(%q, %q)", s.url, s.token) {
				if step != "session" && !got.refused() {
					t.Errorf("%s: the page reads %+v", step, got)
				}
			}
			// Without a preflight, and without a token: the page sends it blindly.
			if got := await[sight](t, stranger, `see(%q, {method: "POST", mode: "no-cors", body: "{}"})`, s.url+"/v1/sandboxes"); got.Text != "" || got.Status != 0 {
				t.Errorf("the page reads %+v", got)
			}
			for _, open := range []string{"/healthz", "/v1/whoami"} {
				if got := await[sight](t, stranger, "see(%q)", s.url+open); !got.refused() {
					t.Errorf("%s: the page reads %+v", open, got)
				}
			}
		})
	}
	if after := strings.Join(s.sandboxes(t), " "); after != before {
		t.Errorf("there were the sandboxes %q, and are %q", before, after)
	}
}
