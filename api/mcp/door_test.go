// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/guard/guardtest"
	v1 "sandpit.dev/api/v1"
)

func TestDoor(t *testing.T) {
	guardtest.Run(t, guardtest.Coat{
		Via: "mcp",
		Handler: func(t *testing.T, g *guard.Guard) http.Handler {
			return g.Through(guard.Door{Via: "mcp"}, open(t).handler)
		},
		Method: "POST", Path: "/mcp", Body: initialize, Status: 200,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}},
		Refusal: func(t *testing.T, status int, h http.Header, body []byte) {
			t.Helper()
			var p v1.Problem
			if err := json.Unmarshal(body, &p); err != nil || h.Get("Content-Type") != v1.ProblemType || p.Status != status || p.RequestID == "" {
				t.Errorf("got %s %s", h.Get("Content-Type"), body)
			}
		},
	})
}
