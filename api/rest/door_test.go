// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/guard/guardtest"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
)

func TestDoor(t *testing.T) {
	t.Parallel()
	guardtest.Run(t, guardtest.Coat{
		Via: "rest",
		Handler: func(t *testing.T, g *guard.Guard) http.Handler {
			return open(t, func(o *rest.Options) { o.Guard = g }).api
		},
		Method: "GET", Path: "/v1/limits", Status: 200,
		Refusal: func(t *testing.T, status int, h http.Header, body []byte) {
			t.Helper()
			var p v1.Problem
			if err := json.Unmarshal(body, &p); err != nil || h.Get("Content-Type") != v1.ProblemType || p.Status != status || p.Code == "" || p.RequestID == "" {
				t.Errorf("got %s %s", h.Get("Content-Type"), body)
			}
		},
	})
}
