// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/guard/guardtest"
	"sandpit.dev/api/orkestr"
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

// links makes no addresses.
type links struct{}

func (links) HostToken(string) string                    { return "" }
func (links) SandboxToken(string, string, string) string { return "" }
func (links) Addresses(*http.Request, string, int) (string, string) {
	return "", ""
}
func (links) LinkAddress(*http.Request, string, int) string { return "" }

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
	o := orkestr.Options{Guard: g, Previews: links{}, Region: "local"}
	o.Services = service.Of(s.Creator, s.Files, ports.New(s.Engine), s.Code, s.Runs, ask.NewDesk(s.Engine, func() permit.Rules { return permit.Rules{Presets: presets} }, nil), skills.New(s.Engine, skills.Options{}))
	o.Files, err = filelink.New(make([]byte, 32))
	must(t, err)
	a, err := orkestr.New(o)
	must(t, err)
	t.Cleanup(a.Close)
	return a
}

func TestDoor(t *testing.T) {
	guardtest.Run(t, guardtest.Coat{
		Via: "orkestr", Method: "GET", Path: orkestr.Base + "/v1/sandboxes", Status: http.StatusOK, TooLarge: http.StatusUnprocessableEntity, Handler: behind, // the SDK has no class for 413
		Refusal: func(t *testing.T, _ int, h http.Header, body []byte) {
			t.Helper()
			var p struct{ Detail string }
			if err := json.Unmarshal(body, &p); err != nil || h.Get("Content-Type") != "application/json" || p.Detail == "" {
				t.Errorf("got %s %s (%v)", h.Get("Content-Type"), body, err)
			}
		},
	})
}
