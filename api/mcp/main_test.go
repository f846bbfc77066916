// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// overTLS has all tests speak HTTP/2 over TLS.
var overTLS = os.Getenv("SANDPIT_TEST_TLS") == "1"

// startServer starts a server, with TLS where that is asked for.
func startServer(h http.Handler) *httptest.Server {
	srv := httptest.NewUnstartedServer(h)
	if overTLS {
		srv.EnableHTTP2 = true
		srv.StartTLS()
	} else {
		srv.Start()
	}
	return srv
}

// newPlainServer starts a server without TLS, for programs in sandboxes: those do not know the tests' certificate.
func newPlainServer(t testing.TB, h http.Handler) (url string) {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestMain(m *testing.M) {
	if overTLS { // all servers have the one certificate of httptest
		srv := startServer(nil)
		http.DefaultTransport = srv.Client().Transport
		srv.Close()
	}
	goleak.VerifyTestMain(m)
}
