// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"sandpit.dev/api/gateway"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/guard/guardtest"
	"sandpit.dev/api/service"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/skills"
	"sandpit.dev/network/ask"
	"sandpit.dev/network/permit"
	"sandpit.dev/network/preset"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// behind is the coat behind a guard, over an engine with a host of the memory runtime.
func behind(t *testing.T, g *guard.Guard) http.Handler {
	t.Helper()
	return over(t, g, enginetest.Start(t, t.TempDir()))
}

// over is the coat over a server.
func over(t *testing.T, g *guard.Guard, s *enginetest.Server) http.Handler {
	t.Helper()
	presets, err := preset.New(preset.Options{})
	must(t, err)
	o := gateway.Options{Guard: g}
	o.Services = service.Of(s.Creator, s.Files, ports.New(s.Engine), s.Code, s.Runs, ask.NewDesk(s.Engine, func() permit.Rules { return permit.Rules{Presets: presets} }, nil), skills.New(s.Engine, skills.Options{}))

	a, err := gateway.New(o)
	must(t, err)
	t.Cleanup(a.Close)
	return a
}

func TestDoor(t *testing.T) {
	guardtest.Run(t, guardtest.Coat{
		Via: "gateway", Method: "GET", Path: gateway.Base + "/api/v1/sandboxes", Status: http.StatusOK, TooLarge: http.StatusUnprocessableEntity, Handler: behind, // the SDK has no class for 413
		Refusal: func(t *testing.T, _ int, h http.Header, body []byte) {
			t.Helper()
			var p struct {
				Error struct{ Code, Message string }
			}
			if err := json.Unmarshal(body, &p); err != nil || h.Get("Content-Type") != "application/json" || p.Error.Code == "" || p.Error.Message == "" {
				t.Errorf("got %s %s (%v)", h.Get("Content-Type"), body, err)
			}
		},
	})
}
