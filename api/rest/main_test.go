// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// overTLS has all tests speak HTTP/2 over TLS.
var overTLS = os.Getenv("SANDPIT_TEST_TLS") == "1"

// newServer starts a server, with TLS where that is asked for.
func newServer(h http.Handler) *httptest.Server {
	srv := httptest.NewUnstartedServer(h)
	if overTLS {
		srv.EnableHTTP2 = true
		srv.StartTLS()
	} else {
		srv.Start()
	}
	return srv
}

func TestMain(m *testing.M) {
	if overTLS { // all servers have the one certificate of httptest
		srv := newServer(nil)
		http.DefaultTransport = srv.Client().Transport
		srv.Close()
	}
	goleak.VerifyTestMain(m,
		// The test's own client keeps connections that nobody owns.
		goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"))
}
