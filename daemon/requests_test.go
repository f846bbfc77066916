// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
)

func TestRatesOfRequests(t *testing.T) {
	read := func(t *testing.T, text string) (guard.Rates, error) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := DefaultConfig()
		if err := cfg.ReadFile(path); err != nil {
			return guard.Rates{}, err
		}
		if err := cfg.Check(); err != nil {
			return guard.Rates{}, err
		}
		return cfg.Ceilings.Requests.rates()
	}
	for text, want := range map[string]guard.Rates{
		"listen: 127.0.0.1:0":                               {},
		"limits: {requests: {token: 20/s, project: 600/m}}": {Token: 20, Project: 10},
		"limits: {requests: {project: 36/h}}":               {Project: 0.01},
	} {
		if got, err := read(t, text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, bad := range []string{"20", "0/s", "-1/s", "1/d", "1/", "/s", "1.5/s", "many/s", "9999999/s"} {
		if _, err := read(t, `limits: {requests: {token: "`+bad+`"}}`); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}
