// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/settings"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	h := open(t)
	of := func(all v1.SettingList, name string) v1.Setting {
		t.Helper()
		at := slices.IndexFunc(all.Items, func(s v1.Setting) bool { return s.Name == name })
		if at < 0 {
			t.Fatalf("there is no %s in %+v", name, all)
		}
		return all.Items[at]
	}
	t.Run("AreListedAndChange", func(t *testing.T) {
		if s := of(want[v1.SettingList](h, http.StatusOK, "GET", "/v1/settings", nil), "idle_timeout_seconds"); s.Source != "default" || s.Holds != "new" || s.ChangedAt != nil {
			t.Errorf("at first: %+v", s)
		}
		s := of(want[v1.SettingList](h, http.StatusOK, "PATCH", "/v1/settings", `{"idle_timeout_seconds": 77, "allowed_variables": ["APP_*"]}`), "idle_timeout_seconds")
		if s.Source != "set" || s.Value != 77.0 || s.ChangedBy != "admin-token" || s.ChangedAt == nil {
			t.Errorf("changed: %+v", s)
		}
		if box := want[v1.Sandbox](h, http.StatusCreated, "POST", "/v1/sandboxes", `{"env": {"APP_X": "1"}}`); box.IdleTimeoutSeconds != 77 {
			t.Errorf("a sandbox that was made after it has %v seconds", box.IdleTimeoutSeconds)
		}
		if a := h.do("POST", "/v1/sandboxes", `{"env": {"OTHER": "1"}}`); a.StatusCode != http.StatusForbidden || !strings.Contains(string(a.body), "allowed_variables") {
			t.Errorf("a variable that is not allowed: %s %s", a.Status, a.body)
		}
		s = of(want[v1.SettingList](h, http.StatusOK, "PATCH", "/v1/settings", `{"unset": ["idle_timeout_seconds", "allowed_variables"]}`), "idle_timeout_seconds")
		if s.Source != "default" || s.Value != s.Otherwise {
			t.Errorf("taken back: %+v", s)
		}
	})
	t.Run("AreRefusedWithNothingChanged", func(t *testing.T) {
		before := want[v1.SettingList](h, http.StatusOK, "GET", "/v1/settings", nil)
		for body, says := range map[string]string{
			`{"idle_timeout_seconds": 5, "default_image": "none"}`: "default_image",
			`{"idle_timeout_seconds": -1}`:                         "idle_timeout_seconds",
			`{"idle_timeout_seconds": 1e30}`:                       "idle_timeout_seconds",
			`{"idle_timeout": 5}`:                                  "idle_timeout",
			`{"log_requests": "yes"}`:                              "log_requests",
			`{"unset": ["idle_timeuot_seconds"]}`:                  "idle_timeout_seconds",
			`{"unset": ["log_mcp"], "log_mcp": true}`:              "unset",
		} {
			if a := h.do("PATCH", "/v1/settings", body); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), says) {
				t.Errorf("%s: %s %s", body, a.Status, a.body)
			}
		}
		if after := want[v1.SettingList](h, http.StatusOK, "GET", "/v1/settings", nil); !reflect.DeepEqual(before, after) {
			t.Errorf("changed from %+v to %+v", before, after)
		}
	})
	t.Run("AreOfTheServersAdministrator", func(t *testing.T) {
		chief := h.as("default", access.Admin)
		for _, path := range []string{"/v1/settings", "/v1/settings/sandbox", "/api/v1/settings/sandbox"} {
			for _, method := range []string{"GET", "PATCH"} {
				if a := chief.do(method, path, `{}`); a.StatusCode != http.StatusForbidden {
					t.Errorf("%s %s: %s", method, path, a.Status)
				}
			}
		}
	})
	t.Run("InTheGatewaysForm", func(t *testing.T) {
		got := want[v1.SandboxSettings](h, http.StatusOK, "PATCH", "/api/v1/settings/sandbox", `{"idle_timeout_seconds": 1800, "stopped_retention_seconds": 18000, "db_default_image": "python", "env_allowlist": ["LANG"], "db_active_images": ["python*"]}`)
		if got.IdleTimeoutSeconds != 1800 || got.StoppedRetentionSeconds != 18000 || got.DBDefaultImage == nil || *got.DBDefaultImage != "python" || !slices.Equal(got.EnvAllowlist, []string{"LANG"}) || !slices.Equal(got.DBActiveImages, []string{"python*"}) {
			t.Errorf("%+v", got)
		}
		if got := want[v1.SandboxSettings](h, http.StatusOK, "PATCH", "/api/v1/settings/sandbox", `{"db_default_image": ""}`); got.DBDefaultImage != nil || got.IdleTimeoutSeconds != 1800 {
			t.Errorf("%+v", got)
		}
		if a := h.do("PATCH", "/api/v1/settings/sandbox", `{"stopped_retention_seconds": -5}`); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), "stopped_retention_seconds") {
			t.Errorf("%s %s", a.Status, a.body)
		}
	})
	t.Run("EachHasAField", func(t *testing.T) {
		var names []string
		for f := range reflect.TypeFor[v1.UpdateSettings]().Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "unset" {
				names = append(names, name)
			}
		}
		if !slices.Equal(names, settings.Names()) {
			t.Errorf("the fields are %v, the settings %v", names, settings.Names())
		}
	})
}

func TestTheConfigurationIsTold(t *testing.T) {
	t.Parallel()
	h := open(t) // with the configuration of the house
	got := want[v1.Configuration](h, http.StatusOK, "GET", "/v1/settings/configuration", nil).Items
	if len(got) != 3 || got[0] != (v1.ConfiguredValue{Key: "listen", Value: "127.0.0.1:8080", Source: "flag"}) || got[1].Setting != "log_level" || !got[2].Secret ||
		!reflect.DeepEqual(got[2].Value, map[string]any{"web": map[string]any{"pids": 5.0, "env": map[string]any{"KEY": "[redacted]"}}}) {
		t.Errorf("got %+v", got)
	}
	if a := h.as("default", access.Admin).do("GET", "/v1/settings/configuration", nil); a.StatusCode != http.StatusForbidden {
		t.Errorf("a project's administrator: got %d %s", a.StatusCode, a.body)
	}
}
