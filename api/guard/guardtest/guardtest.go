// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package guardtest holds a coat to what is the guard's behind every door: Host, Origin, tokens and where they may
// stand, bounds of bodies, ids of requests, the log, the audit log and the measurements.
package guardtest

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/audit"
	"sandpit.dev/fault"
)

// Token is the token that the suite's guard knows; nobody has another. Its caller may do everything.
const Token = "a-token-of-the-suite"

const (
	maxBody = 1 << 10
	trusted = "https://console.example.org"
	guess   = "not-a-token-of-anybody"
)

// Coat is a coat as the suite asks it.
type Coat struct {
	Via string // of its door
	// Handler returns the coat behind its door of a guard, in the way in which the server has it.
	Handler func(t *testing.T, g *guard.Guard) http.Handler
	// Method, Path and Body are those of a request, with the headers of Header, that is answered with Status
	// where it has the token.
	Method, Path, Body string
	Header             http.Header
	Status             int
	// TooLarge is the status of a body that is too large; zero: 413.
	TooLarge int
	// Present puts a token into a request, once for each of the places of the door; nil: as a bearer token.
	Present []func(r *http.Request, token string)
	// Refusal fails the test if an error is not written as the coat writes them.
	Refusal func(t *testing.T, status int, h http.Header, body []byte)
}

// Run runs the suite.
func Run(t *testing.T, c Coat) {
	if c.Present == nil {
		c.Present = []func(*http.Request, string){Bearer}
	}
	for _, one := range []struct {
		name string
		run  func(*testing.T, *house)
	}{
		{"AValidTokenIsServed", served},
		{"WithoutOneNothingIs", unserved},
		{"AnotherHostIsRefused", hosts},
		{"PagesOfOthersAreRefused", pages},
		{"ABodyHasABound", bodies},
		{"TokensAreNotGuessed", guesses},
	} {
		t.Run(one.name, func(t *testing.T) { one.run(t, open(t, c)) })
	}
}

// Bearer puts a token into a request's header Authorization.
func Bearer(r *http.Request, token string) { r.Header.Set("Authorization", "Bearer "+token) }

// house is a coat behind a guard, with what that told of requests.
type house struct {
	Coat
	handler http.Handler

	mu   sync.Mutex
	log  bytes.Buffer
	seen []guard.Observation
	told []access.Caller
}

func (h *house) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(p)
}

// Admit knows one token.
func (h *house) Admit(_ context.Context, token string) (access.Caller, context.Context, func(), error) {
	if token != Token {
		return access.Caller{}, nil, nil, fault.New(fault.Unauthenticated, "the bearer token is not valid")
	}
	return access.Caller{Project: access.DefaultProject, Actor: "suite", Scopes: []access.Scope{access.ServerAdmin}}, context.Background(), func() {}, nil
}

func open(t *testing.T, c Coat) *house {
	t.Helper()
	h := &house{Coat: c}
	g, err := guard.New(guard.Options{
		Tokens: h, Hosts: []string{"box.example.org"}, Origins: []string{trusted}, MaxBody: maxBody,
		Logger: slog.New(slog.NewTextHandler(h, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Observe: func(o guard.Observation) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.seen = append(h.seen, o)
		},
		Record: func(_ context.Context, o *audit.Operation, _ audit.Answer) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.told = append(h.told, o.Caller)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.handler = c.Handler(t, g)
	return h
}

// Getter returns what gets a path of a coat behind a guard, with [Token].
func Getter(t *testing.T, handler func(t *testing.T, g *guard.Guard) http.Handler) func(path string) *httptest.ResponseRecorder {
	t.Helper()
	h := open(t, Coat{Handler: handler, Method: http.MethodGet, Present: []func(*http.Request, string){Bearer}})
	return func(path string) *httptest.ResponseRecorder {
		h.Path = path
		return h.ask(h.with(Token))
	}
}

// ask sends the coat's request, as change has it.
func (h *house) ask(change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(h.Method, "http://box.example.org"+h.Path, strings.NewReader(h.Body))
	r.Header = h.Header.Clone()
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w
}

// with returns what puts a token into a request by the first of the door's places.
func (h *house) with(token string) func(*http.Request) {
	return func(r *http.Request) { h.Present[0](r, token) }
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// noted fails the test if the last request left no trace, or one with a token in it.
func (h *house) noted(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	id, log := w.Header().Get("X-Request-Id"), h.log.String()
	switch {
	case id == "":
		t.Error("the answer has no id of the request")
	case !strings.Contains(log, id):
		t.Errorf("the log has no line with the id %s: %s", id, log)
	}
	for _, secret := range []string{Token, guess} {
		if strings.Contains(log, secret) || strings.Contains(w.Body.String(), secret) {
			t.Errorf("a token stands in the log or in the answer: %s %s", log, w.Body)
		}
	}
	if len(h.seen) == 0 || h.seen[len(h.seen)-1].Status != w.Code {
		t.Errorf("measured were %+v, and the answer has the status %d", h.seen, w.Code)
	}
	for _, o := range h.seen {
		if strings.Contains(o.Route, Token) || strings.Contains(o.Route, "?") {
			t.Errorf("the route %q has what a caller chose", o.Route)
		}
	}
	if len(h.told) == 0 {
		t.Error("the audit log was not told")
	}
}

// refused fails the test if an answer is not a refusal with a status, as the coat writes it.
func (h *house) refused(t *testing.T, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	if w.Code != status {
		t.Errorf("got %d %s, want %d", w.Code, w.Body, status)
		return
	}
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("an error may be kept by a cache: %q", got)
	}
	if status == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") == "" {
		t.Error("the answer 401 has no challenge")
	}
	h.Refusal(t, w.Code, w.Header(), w.Body.Bytes())
	h.noted(t, w)
}

func served(t *testing.T, h *house) {
	for i, present := range h.Present {
		w := h.ask(func(r *http.Request) { present(r, Token) }, header("X-Request-Id", "chosen-by-the-client"))
		if w.Code != h.Status {
			t.Errorf("by the place %d: got %d %s, want %d", i, w.Code, w.Body, h.Status)
		}
		if id := w.Header().Get("X-Request-Id"); id != "chosen-by-the-client" {
			t.Errorf("the request's id became %q", id)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Error("a browser may take the answer for another type than it says")
		}
		h.noted(t, w)
		if c := h.told[len(h.told)-1]; c.Via != h.Via || c.Actor != "suite" || c.RequestID != "chosen-by-the-client" {
			t.Errorf("the audit log was told of %+v, by %q", c, c.Via)
		}
	}
}

func unserved(t *testing.T, h *house) {
	h.refused(t, h.ask(), http.StatusUnauthorized)
	for _, present := range h.Present {
		h.refused(t, h.ask(func(r *http.Request) { present(r, guess) }), http.StatusUnauthorized)
	}
	for _, other := range []func(*http.Request){
		func(r *http.Request) { r.SetBasicAuth("x", Token) },
		func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "token", Value: Token}) },
		func(r *http.Request) { r.URL.RawQuery = "access_token=" + Token },
		func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer " + Token, "Bearer " + Token} },
	} {
		h.refused(t, h.ask(other), http.StatusUnauthorized)
	}
	for i := range h.Present {
		for _, other := range h.Present[:i] {
			w := h.ask(func(r *http.Request) { h.Present[i](r, Token); other(r, Token) })
			h.refused(t, w, http.StatusUnauthorized)
		}
	}
}

func hosts(t *testing.T, h *house) {
	rebound := func(r *http.Request) { r.Host = "rebound.example" }
	h.refused(t, h.ask(h.with(Token), rebound), http.StatusForbidden)
	// Nothing is learnt of a token by a page that was led here.
	h.refused(t, h.ask(h.with(guess), rebound), http.StatusForbidden)
}

func pages(t *testing.T, h *house) {
	h.refused(t, h.ask(h.with(Token), header("Origin", "https://evil.example")), http.StatusForbidden)
	h.refused(t, h.ask(h.with(Token), header("Sec-Fetch-Site", "cross-site")), http.StatusForbidden)
	w := h.ask(h.with(Token), header("Origin", trusted))
	if w.Code != h.Status || w.Header().Get("Access-Control-Allow-Origin") != trusted {
		t.Errorf("a page that the operator trusts got %d %s", w.Code, w.Body)
	}
	r := httptest.NewRequest(http.MethodOptions, "http://box.example.org"+h.Path, nil)
	r.Header.Set("Origin", trusted)
	r.Header.Set("Access-Control-Request-Method", h.Method)
	w = httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	if w.Code != http.StatusNoContent {
		t.Errorf("its browser asks first, and got %d %s", w.Code, w.Body)
	}
}

func bodies(t *testing.T, h *house) {
	large := func(r *http.Request) {
		r.Body, r.ContentLength = http.NoBody, maxBody+1
		r.Body = struct {
			*strings.Reader
			closer
		}{strings.NewReader(strings.Repeat(" ", maxBody+1)), closer{}}
	}
	h.refused(t, h.ask(h.with(Token), large), cmp.Or(h.TooLarge, http.StatusRequestEntityTooLarge))
}

type closer struct{}

func (closer) Close() error { return nil }

func guesses(t *testing.T, h *house) {
	for range 100 {
		if w := h.ask(h.with(guess)); w.Code == http.StatusTooManyRequests {
			if w.Header().Get("Retry-After") == "" {
				t.Error("who guesses is not told how long to wait")
			}
			h.Refusal(t, w.Code, w.Header(), w.Body.Bytes())
			if w := h.ask(h.with(Token)); w.Code != h.Status {
				t.Errorf("a valid token of the same address got %d %s", w.Code, w.Body)
			}
			return
		}
	}
	t.Error("100 tokens that are not valid were all tried at once")
}
