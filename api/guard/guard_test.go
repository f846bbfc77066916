// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/internal/checktest"
)

// oneToken knows one token.
type oneToken string

func (o oneToken) Admit(_ context.Context, token string) (access.Caller, context.Context, func(), error) {
	c, err := o.check(token)
	return c, context.Background(), func() {}, err
}

func (o oneToken) check(token string) (access.Caller, error) {
	if token != string(o) {
		return access.Caller{}, fault.New(fault.Unauthenticated, "the bearer token is not valid")
	}
	return access.Caller{Project: "default", Actor: "tester", Scopes: []access.Scope{access.Admin}}, nil
}

// site is a guard around a handler, with what it logged and measured.
type site struct {
	handler http.Handler
	log     *bytes.Buffer
	mu      sync.Mutex
	seen    []guard.Observation
}

func newSite(t *testing.T, h http.HandlerFunc, change ...func(*guard.Options)) *site {
	t.Helper()
	s := &site{log: new(bytes.Buffer)}
	o := guard.Options{
		Tokens: oneToken("right"), Hosts: []string{"box.example.org", "192.0.2.7"}, Origins: []string{"https://console.example.org"},
		Logger: slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Observe: func(o guard.Observation) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.seen = append(s.seen, o)
		},
	}
	for _, f := range change {
		f(&o)
	}
	g, err := guard.New(o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /things/{id}", h)
	mux.Handle("POST /things/{id}", h)
	s.handler = g.Wrap("rest", mux)
	return s
}

// ask sends a request as a client on loopback does, with the right token.
func (s *site) ask(method string, headers ...string) *httptest.ResponseRecorder {
	return s.askBody(method, nil, headers...)
}

func (s *site) askBody(method string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/things/7", body)
	r.Host = "127.0.0.1:8080"
	r.Header.Set("Authorization", "Bearer right")
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			r.Host = headers[i+1]
		case headers[i+1] == "":
			r.Header.Del(headers[i])
		default:
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }

func problemOf(t *testing.T, w *httptest.ResponseRecorder) v1.Problem {
	t.Helper()
	var p v1.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Header().Get("Content-Type") != v1.ProblemType {
		t.Fatalf("got %d %q, want a problem", w.Code, w.Body)
	}
	return p
}

func TestHost(t *testing.T) {
	s := newSite(t, ok)
	for host, status := range map[string]int{
		"127.0.0.1:8080": 200, "127.0.0.1": 200, "127.1.2.3:1": 200, "localhost:8080": 200, "LOCALHOST": 200, "localhost.": 200, "a.localhost:1": 200,
		"[::1]:8080": 200, "[::1]": 200, "[::ffff:127.0.0.1]:80": 200, "box.example.org": 200, "Box.Example.Org:443": 200, "192.0.2.7:8080": 200,
		"evil.example": 403, "127.0.0.1.evil.example": 403, "evil.localhost.example": 403, "localhostx": 403, "": 403, "10.0.0.1": 403, "192.0.2.8": 403,
		"box.example.org.evil": 403, "0.0.0.0:8080": 403, "[::]:1": 403, "127.0.0.1:8080:9": 403, "2130706433": 403, "0x7f.1": 403, "box.example.org@evil": 403,
	} {
		if w := s.ask("GET", "Host", host); w.Code != status {
			t.Errorf("%q: got %d %s, want %d", host, w.Code, w.Body, status)
		}
	}
	t.Run("ARefusalTellsNothingAboutTheToken", func(t *testing.T) {
		a, b := s.ask("GET", "Host", "evil.example", "X-Request-Id", "x"), s.ask("GET", "Host", "evil.example", "Authorization", "Bearer wrong", "X-Request-Id", "x")
		if a.Body.String() != b.Body.String() || a.Code != b.Code {
			t.Errorf("got %s and %s", a.Body, b.Body)
		}
	})
	t.Run("TheAddressOfTheConnectionIsFine", func(t *testing.T) {
		srv := httptest.NewServer(s.handler)
		defer srv.Close()
		req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/things/7", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer right")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("got %d", resp.StatusCode)
		}
	})
}

func TestCheckHostsChecksNothingElse(t *testing.T) {
	g, err := guard.New(guard.Options{Tokens: oneToken("right")})
	if err != nil {
		t.Fatal(err)
	}
	h := g.CheckHosts(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for host, want := range map[string]int{"localhost:8080": http.StatusTeapot, "[::1]": http.StatusTeapot, "evil.example": http.StatusForbidden} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		r.Header.Set("Origin", "https://elsewhere.example")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: got %d, want %d", host, w.Code, want)
		}
	}
}

func TestOrigin(t *testing.T) {
	s := newSite(t, ok)
	for _, c := range []struct {
		name, method string
		headers      []string
		status       int
	}{
		{"no browser", "POST", nil, 200},
		{"our own page", "POST", []string{"Origin", "http://127.0.0.1:8080"}, 200},
		{"our own page by its site", "POST", []string{"Origin", "http://127.0.0.1:8080", "Sec-Fetch-Site", "same-origin"}, 200},
		{"a trusted page", "POST", []string{"Origin", "https://console.example.org", "Sec-Fetch-Site", "cross-site"}, 200},
		{"another page", "POST", []string{"Origin", "https://evil.example"}, 403},
		{"another page that reads", "GET", []string{"Origin", "https://evil.example"}, 403},
		{"another page's WebSocket", "GET", []string{"Origin", "https://evil.example", "Upgrade", "websocket", "Connection", "Upgrade"}, 403},
		{"another port's page", "POST", []string{"Origin", "http://127.0.0.1:9090"}, 403},
		{"a page of no origin", "POST", []string{"Origin", "null"}, 403},
		{"a page that hides its origin", "POST", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"an image of another site", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, 403},
		{"an image of a page on another port", "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"a link of another site, to what needs a token", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"a trusted page that reads", "GET", []string{"Origin", "https://console.example.org", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, 200},
		{"an address that was typed", "GET", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, 200},
		{"a name that begins alike", "POST", []string{"Origin", "https://console.example.org.evil.example"}, 403},
		{"another scheme", "POST", []string{"Origin", "file://127.0.0.1:8080"}, 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := s.ask(c.method, c.headers...)
			if w.Code != c.status {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, c.status)
			}
			if c.status == 403 && problemOf(t, w).Code != "denied" {
				t.Errorf("got %s", w.Body)
			}
		})
	}
	if _, err := guard.New(guard.Options{Tokens: oneToken(""), Origins: []string{"console.example.org/x"}}); !fault.Is(err, fault.Invalid) {
		t.Errorf("an origin that is none: got %v", err)
	}
}

func TestToken(t *testing.T) {
	s := newSite(t, ok)
	for header, status := range map[string]int{
		"Bearer right": 200, "bearer right": 200, "Bearer  right": 200,
		"": 401, "Bearer": 401, "Bearer ": 401, "right": 401, "Basic right": 401, "Bearer wrong": 401, "Bearer right right": 401,
		"Bearer " + strings.Repeat("x", 513): 401, "Bearer r\x01ght": 401, "Bearer rïght": 401,
	} {
		w := s.ask("GET", "Authorization", header)
		if w.Code != status {
			t.Errorf("%.30q: got %d %s, want %d", header, w.Code, w.Body, status)
		}
		if status == 401 {
			if p := problemOf(t, w); p.Code != "unauthenticated" || strings.Contains(w.Body.String(), "wrong") {
				t.Errorf("%.30q: got %+v", header, p)
			}
			if !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%.30q: got no challenge", header)
			}
		}
	}
	t.Run("TwoHeadersAreNone", func(t *testing.T) {
		r := httptest.NewRequest("GET", "http://localhost/things/7", nil)
		r.Header["Authorization"] = []string{"Bearer right", "Bearer right"}
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if w.Code != 401 {
			t.Errorf("got %d", w.Code)
		}
	})
	t.Run("TheHandlerKnowsWhoAsks", func(t *testing.T) {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			c, err := guard.Caller(r.Context())
			fmt.Fprint(w, c.Actor, " ", c.Via, " ", err)
		})
		if got := s.ask("GET").Body.String(); got != "tester rest <nil>" {
			t.Errorf("got %q", got)
		}
		if _, err := guard.Caller(t.Context()); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("without a guard: got %v", err)
		}
	})
	t.Run("OpenOnesNeedNone", func(t *testing.T) {
		g, err := guard.New(guard.Options{Tokens: oneToken("right")})
		if err != nil {
			t.Fatal(err)
		}
		h := g.WrapOpen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := guard.Caller(r.Context()); err == nil {
				t.Error("there is a caller")
			}
			ok(w, r)
		}))
		for host, status := range map[string]int{"localhost": 200, "evil.example": 403} {
			r := httptest.NewRequest("GET", "http://"+host+"/", nil)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != status {
				t.Errorf("%s: got %d, want %d", host, w.Code, status)
			}
		}
	})
}

func TestRequestID(t *testing.T) {
	s := newSite(t, ok)
	for given, kept := range map[string]bool{"abc-1.2_3": true, "": false, "a b": false, "a\"b": false, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false, "ü": false} {
		got := s.ask("GET", "X-Request-Id", given).Header().Get("X-Request-Id")
		if (got == given) != kept || got == "" {
			t.Errorf("%q: got %q, kept: want %v", given, got, kept)
		}
	}
	if a, b := s.ask("GET").Header().Get("X-Request-Id"), s.ask("GET").Header().Get("X-Request-Id"); a == b {
		t.Errorf("two requests have the id %s", a)
	}
}

func TestBody(t *testing.T) {
	read := func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			guard.Error(w, r, fmt.Errorf("reading: %w", err))
		}
	}
	s := newSite(t, read, func(o *guard.Options) { o.MaxBody = 10 })
	for n, status := range map[int]int{0: 200, 10: 200, 11: 413} {
		for _, body := range []io.Reader{strings.NewReader(strings.Repeat("x", n)), io.MultiReader(strings.NewReader(strings.Repeat("x", n)))} {
			w := s.askBody("POST", body)
			if w.Code != status || status == 413 && problemOf(t, w).Code != "too_large" {
				t.Errorf("%d bytes as %T: got %d %s, want %d", n, body, w.Code, w.Body, status)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	secret := errors.New("secret inside")
	for _, code := range fault.Codes() {
		t.Run(string(code), func(t *testing.T) {
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				e := fault.Wrap(code, fmt.Errorf("a: %w", fault.Wrap(fault.Unavailable, secret, "the disk is away")), "what is wrong").WithRemedy("the next step")
				guard.Error(w, r, fmt.Errorf("outer: %w", e))
			})
			w := s.ask("GET")
			p := problemOf(t, w)
			if guard.Status(code) == 500 != (code == fault.Internal) {
				t.Errorf("the code has no row of its own: got %d", guard.Status(code))
			}
			checktest.Equal(t, "Code", w.Code, guard.Status(code))
			checktest.Equal(t, "Status", p.Status, w.Code)
			checktest.Equal(t, "Code", p.Code, string(code))
			checktest.Some(t, "Title", p.Title)
			checktest.Equal(t, "Type", p.Type, "urn:sandpit:error:"+p.Code)
			if strings.Contains(w.Body.String(), "secret") {
				t.Errorf("the inside is shown: %s", w.Body)
			}
			if !strings.Contains(s.log.String(), "secret inside") || !strings.Contains(s.log.String(), p.RequestID) {
				t.Errorf("the log has no cause: %s", s.log)
			}
			if code == fault.Internal {
				if p.Detail != "internal error" || p.Cause != "" {
					t.Errorf("got %+v", p)
				}
				return
			}
			if p.Detail != "what is wrong" || p.Remedy != "the next step" || p.Cause != "the disk is away" {
				t.Errorf("got %+v", p)
			}
			if got := w.Header().Get("Retry-After") != ""; got != (code == fault.Exhausted || code == fault.Unavailable) {
				t.Errorf("Retry-After: got %q", w.Header().Get("Retry-After"))
			}
		})
	}
	t.Run("AFullDisk", func(t *testing.T) {
		for _, disk := range fault.Disks() {
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				guard.Error(w, r, fault.NoSpace(disk, fault.New(fault.Unavailable, "inner"), "no room"))
			})
			w := s.ask("GET")
			if p := problemOf(t, w); w.Code != 507 || p.Code != "full" || p.Cause != string(disk) || w.Header().Get("Retry-After") != "" {
				t.Errorf("got %d %+v, Retry-After %q", w.Code, p, w.Header().Get("Retry-After"))
			}
		}
	})
	t.Run("WithAReason", func(t *testing.T) {
		for _, code := range []fault.Code{fault.Conflict, fault.Internal} {
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				guard.Error(w, r, fault.New(code, "inside").WithReason("what_for"))
			})
			if p, want := problemOf(t, s.ask("GET")), map[bool]string{true: "what_for"}[code != fault.Internal]; p.Reason != want {
				t.Errorf("%s: got %+v, want the reason %q", code, p, want)
			}
		}
	})
	t.Run("WithoutACode", func(t *testing.T) {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) { guard.Error(w, r, secret) })
		if p := problemOf(t, s.ask("GET")); p.Code != "internal" || p.Detail != "internal error" {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("ACanceledOne", func(t *testing.T) {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) { guard.Error(w, r, context.Canceled) })
		if w := s.ask("GET"); w.Code != 499 {
			t.Errorf("got %d", w.Code)
		}
	})
}

func TestANotYetIsNoErrorOfTheServers(t *testing.T) {
	away := fault.New(fault.Unavailable, "the server is starting")
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request, error)
		level  string
	}{"NotYet": {guard.NotYet, "INFO"}, "Error": {guard.Error, "ERROR"}} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) { c.answer(w, r, away) })
			w := s.ask("GET")
			if p := problemOf(t, w); w.Code != http.StatusServiceUnavailable || p.Detail != "the server is starting" || w.Header().Get("Retry-After") == "" {
				t.Errorf("got %d %+v", w.Code, p)
			}
			if log := s.log.String(); !strings.Contains(log, `"level":"`+c.level+`"`) || !strings.Contains(log, "the server is starting") {
				t.Errorf("got %s, want the level %s and the reason", log, c.level)
			}
		})
	}
}

func TestPanic(t *testing.T) {
	t.Run("IsAnAnswer", func(t *testing.T) {
		s := newSite(t, func(http.ResponseWriter, *http.Request) { panic("secret state") })
		w := s.ask("GET")
		if p := problemOf(t, w); p.Code != "internal" || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("got %s", w.Body)
		}
		if log := s.log.String(); !strings.Contains(log, "secret state") || !strings.Contains(log, "guard_test.go") {
			t.Errorf("the log has neither value nor stack: %s", log)
		}
	})
	t.Run("CutsAnAnswerThatWasBegun", func(t *testing.T) {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) { ok(w, r); panic("late") })
		defer func() {
			if v := recover(); v != http.ErrAbortHandler {
				t.Errorf("got %v, want http.ErrAbortHandler", v)
			}
			if !strings.Contains(s.log.String(), "late") {
				t.Errorf("the log has nothing of it: %s", s.log)
			}
		}()
		s.ask("GET")
	})
}

func TestObserve(t *testing.T) {
	s := newSite(t, ok)
	s.ask("GET")
	s.ask("GET", "Authorization", "")
	s.ask("BREW")
	if len(s.seen) != 3 {
		t.Fatalf("got %v", s.seen)
	}
	if o := s.seen[0]; o.Route != "GET /things/{id}" || o.Status != 200 || o.Method != "GET" || o.BytesOut != 4 {
		t.Errorf("got %+v", o)
	}
	if o := s.seen[1]; o.Route != "" || o.Status != 401 {
		t.Errorf("got %+v", o)
	}
	if o := s.seen[2]; o.Route != "" || o.Method != "OTHER" || o.Status != 405 {
		t.Errorf("a label that a caller chose: got %+v", o)
	}
}

// TestADetachedRequestGoesOn: what belongs to a request lives until that is over which goes on behind its handler.
func TestADetachedRequestGoesOn(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func()
	}{
		{"ToItsEnd", func() {}},
		{"ToAPanic", func() { panic("late") }},
		{"ToAnAbort", func() { panic(http.ErrAbortHandler) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen, goOn, returned := make(chan guard.Observation, 1), make(chan struct{}), make(chan context.Context, 1)
			site := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusSwitchingProtocols)
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				guard.Detach(r.Context(), func() {
					defer conn.Close()
					<-goOn
					if _, err := guard.Caller(r.Context()); err != nil {
						t.Errorf("it has no caller any more: %v", err)
					}
					c.serve()
				})
				returned <- r.Context()
			}, func(o *guard.Options) { o.Observe = func(o guard.Observation) { seen <- o } })
			srv := httptest.NewServer(site.handler)
			defer srv.Close()
			nc, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if _, err := io.WriteString(nc, "GET /things/1 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer right\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			<-(<-returned).Done() // by then net/http is done with the handler
			if len(seen) > 0 {
				t.Errorf("it is over before what goes on: %+v", <-seen)
			}
			close(goOn)
			if _, err := io.Copy(io.Discard, nc); err != nil {
				t.Errorf("the connection: %v", err)
			}
			if o := <-seen; o.Status != http.StatusSwitchingProtocols || o.Route != "GET /things/{id}" {
				t.Errorf("got %+v", o)
			}
		})
	}
}

func TestSitesOfWhatNeedsNoToken(t *testing.T) {
	g, err := guard.New(guard.Options{Tokens: oneToken("right")})
	if err != nil {
		t.Fatal(err)
	}
	teapot := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) })
	image := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}
	page := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	frame := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}
	fetch := []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}
	for _, c := range []struct {
		name    string
		handler http.Handler
		headers []string
		status  int
	}{
		{"open, by an image", g.WrapOpen(teapot), image, 403},
		{"open, by a frame", g.WrapOpen(teapot), frame, 403},
		{"open, by a link that is followed", g.WrapOpen(teapot), page, 418},
		{"open, without a browser", g.WrapOpen(teapot), nil, 418},
		{"signed, by an image", g.WrapLink(teapot), image, 418},
		{"signed, by a link that is followed", g.WrapLink(teapot), page, 418},
		{"signed, by a page that would read it", g.WrapLink(teapot), fetch, 403},
	} {
		r := httptest.NewRequest("GET", "http://127.0.0.1:8080/x", nil)
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Set(c.headers[i], c.headers[i+1])
		}
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s: got %d, want %d", c.name, w.Code, c.status)
		}
	}
}

func TestStrangersFillNoLog(t *testing.T) {
	s := newSite(t, ok)
	h, path := s.handler, "/"+strings.Repeat("A", 60_000)
	began := time.Now()
	for range 2000 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://127.0.0.1:8080"+path, nil))
	}
	// A burst of 100, and 5 a second.
	if n, most := strings.Count(s.log.String(), "\n"), 102+5*int(time.Since(began).Seconds()+1); n > most || n == 0 || s.log.Len() > n*1500 {
		t.Errorf("2000 requests without a token wrote %d lines of %d bytes into the log, want at most %d", n, s.log.Len(), most)
	}
	if strings.Contains(s.log.String(), strings.Repeat("A", 300)) {
		t.Error("a path stands there in full")
	}
	r := httptest.NewRequest("GET", "http://127.0.0.1:8080/missing", nil)
	r.Header.Set("Authorization", "Bearer right")
	s.log.Reset()
	h.ServeHTTP(httptest.NewRecorder(), r)
	if s.log.Len() == 0 {
		t.Error("a caller's own line is left out because of strangers")
	}
}
