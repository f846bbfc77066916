// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"sandpit.dev/api/guard"
)

// BenchmarkGuard is the guard around a handler that does nothing: with the demand for a
// token, whose check is a comparison here, and for what anyone may read. The difference,
// and bearer's BenchmarkCheck, are what authentication costs.
func BenchmarkGuard(b *testing.B) {
	g, err := guard.New(guard.Options{Tokens: oneToken("right")})
	if err != nil {
		b.Fatal(err)
	}
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct {
		name    string
		handler http.Handler
	}{{"Token", g.Wrap("rest", nothing)}, {"Open", g.WrapOpen(nothing)}} {
		b.Run(c.name, func(b *testing.B) {
			r := httptest.NewRequest("GET", "/things/7", nil)
			r.Host = "127.0.0.1:8080"
			r.Header.Set("Authorization", "Bearer right")
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				c.handler.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
