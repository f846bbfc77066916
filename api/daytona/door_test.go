// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"sandpit.dev/api/daytona"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/guard/guardtest"
)

func TestDoor(t *testing.T) {
	for name, c := range map[string]guardtest.Coat{
		"ControlPlane": {Method: "GET", Path: daytona.Base + "/config", Status: 200},
		"Toolbox":      {Method: "GET", Path: daytona.Base + "/toolbox/none/files?path=x", Status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			c.Via, c.TooLarge = "daytona", http.StatusUnprocessableEntity // the clients have no class for 413
			c.Handler = func(t *testing.T, g *guard.Guard) http.Handler { return parts(t).behind(g) }
			c.Refusal = func(t *testing.T, status int, h http.Header, body []byte) {
				t.Helper()
				var p problem
				if err := json.Unmarshal(body, &p); err != nil || h.Get("Content-Type") != "application/json" || p.StatusCode != status ||
					p.Message == "" || p.Error == "" || p.Code == "" || p.Source == "" || p.Path == "" || p.Method == "" {
					t.Errorf("got %s %s (%v)", h.Get("Content-Type"), body, err)
				}
			}
			guardtest.Run(t, c)
		})
	}
}
