// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkCoat is what the coat and the guard add to a call, without a
// network: a get of a sandbox, which the engine answers from memory.
func BenchmarkCoat(b *testing.B) {
	h := open(b)
	id := h.create().ID
	r := httptest.NewRequest("GET", "http://localhost/v1/sandboxes/"+id, nil)
	r.Header.Set("Authorization", "Bearer "+h.token)
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		h.api.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}

// BenchmarkDecode is the reading of an exec's body and its refusal, which
// reaches no sandbox.
func BenchmarkDecode(b *testing.B) {
	h := open(b)
	body := `{"command":" ","timeout_seconds":300,"env":{"A":"1","B":"2"},"cwd":"/workspace"}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", "http://localhost/v1/sandboxes/nosuch/exec", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+h.token)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.api.ServeHTTP(w, r)
		if w.Code != http.StatusUnprocessableEntity {
			b.Fatal(w.Code)
		}
	}
}

// BenchmarkExecPairs is BenchmarkExec with an idempotency key and without one, in turns: the
// figures are the median time of each, and of the differences.
func BenchmarkExecPairs(b *testing.B) {
	h := open(b)
	path := "/v1/sandboxes/" + h.create().ID + "/exec"
	exec := func(headers ...string) time.Duration {
		began := time.Now()
		if a := h.do("POST", path, `{"argv":["/bin/true"]}`, headers...); a.StatusCode != http.StatusOK {
			b.Fatal(string(a.body))
		}
		return time.Since(began)
	}
	var bare, with, more []time.Duration
	for n := 0; b.Loop(); n++ {
		var x, y time.Duration
		if n%2 == 0 {
			x, y = exec(), exec("Idempotency-Key", rand.Text())
		} else {
			y, x = exec("Idempotency-Key", rand.Text()), exec()
		}
		bare, with, more = append(bare, x), append(with, y), append(more, y-x)
	}
	for name, all := range map[string][]time.Duration{"bare-µs": bare, "keyed-µs": with, "more-µs": more} {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1000, name)
	}
}

// BenchmarkExec is a whole round trip over TCP to a command that does nothing.
func BenchmarkExec(b *testing.B) {
	h := open(b)
	path := "/v1/sandboxes/" + h.create().ID + "/exec"
	for b.Loop() {
		if a := h.do("POST", path, `{"argv":["/bin/true"]}`); a.StatusCode != http.StatusOK {
			b.Fatal(string(a.body))
		}
	}
}
