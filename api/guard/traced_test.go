// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
	"sandpit.dev/trace"
)

const callersTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestRequestsAreTracedWithoutWhatTheyHold(t *testing.T) {
	var spans []*trace.Data
	var log bytes.Buffer
	g, err := guard.New(guard.Options{
		Tokens: oneToken("right"), Logger: slog.New(slog.NewTextHandler(&log, nil)), LogAll: func() bool { return true },
		Tracer: trace.New(trace.Options{Export: func(d *trace.Data) { spans = append(spans, d) }}),
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /things/{id}", g.Wrap("rest", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, verb := trace.Start(r.Context(), "verb")
		verb.End()
		switch r.PathValue("id") {
		case "broken":
			panic("secret-in-panic")
		case "none":
			guard.Error(w, r, fault.New(fault.NotFound, "there is no secret-in-message"))
		}
	})))
	mux.Handle("GET /open", g.WrapOpen(http.HandlerFunc(ok)))
	ask := func(method, path, token, parent string) {
		r := httptest.NewRequest(method, path, strings.NewReader("secret-in-body"))
		r.Host = "127.0.0.1"
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Traceparent", parent)
		mux.ServeHTTP(httptest.NewRecorder(), r)
	}
	ask("POST", "/things/secret-in-path?q=secret-in-query", "right", callersTrace)
	if len(spans) != 2 || spans[0].Parent != spans[1].ID || spans[1].Trace.String() != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Fatalf("got %+v", spans)
	}
	all := make(map[string]any)
	for _, a := range spans[1].Attributes {
		all[a.Key] = a.Value
	}
	if spans[1].Name != "POST /things/{id}" || spans[1].Failed || all["http.route"] != "/things/{id}" || all["http.response.status_code"] != int64(200) || all["sandpit.token"] != "tester" || all["sandpit.via"] != "rest" {
		t.Errorf("got %s %v", spans[1].Name, all)
	}
	if !strings.Contains(log.String(), "trace=4bf92f3577b34da6a3ce929d0e0e4736") {
		t.Errorf("the log has %s", &log)
	}
	ask("POST", "/things/none", "right", callersTrace)
	ask("POST", "/things/broken", "right", callersTrace)
	if len(spans) != 6 || spans[3].Failed || !spans[5].Failed {
		t.Errorf("got %+v", spans)
	}
	if text := fmt.Sprintf("%+v", values(spans)); strings.Contains(text, "secret") || strings.Contains(text, "right") || !strings.Contains(text, "not_found") || !strings.Contains(text, "internal") {
		t.Errorf("got %s", text)
	}
	ask("POST", "/things/x", "wrong", callersTrace) // a stranger makes none, whatever the header says
	ask("GET", "/open", "", callersTrace)
	ask("POST", "/things/x", "right", strings.TrimSuffix(callersTrace, "1")+"0")
	if len(spans) != 6 {
		t.Errorf("got %+v", values(spans[6:]))
	}
}

func values(spans []*trace.Data) (all []trace.Data) {
	for _, d := range spans {
		all = append(all, *d)
	}
	return all
}
