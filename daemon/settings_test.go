// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/settings"
)

func TestSettingsSayWhereTheyComeFrom(t *testing.T) {
	c := DefaultConfig()
	file := filepath.Join(t.TempDir(), "sandpit.yaml")
	if err := os.WriteFile(file, []byte("allow_root: false\nlog: {level: warn, requests: true}\nallowed_variables: [APP_*]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	if err := c.ReadEnv(func(name string) string { return map[string]string{"SANDPIT_LOG_LEVEL": "error"}[name] }); err != nil {
		t.Fatal(err)
	}
	c.Defaults.IdleTimeout = time.Hour
	c.NoteFlags()
	for name, want := range map[string]settings.Source{
		"allow_root": settings.File, "log_requests": settings.File, "allowed_variables": settings.File, "log_level": settings.Environment,
		"idle_timeout_seconds": settings.Flag, "max_network": "",
	} {
		if got := c.base.Sources[name]; got != want {
			t.Errorf("%s comes from %q, want %q", name, got, want)
		}
	}
	if v := c.base.Values; v.AllowRoot || v.LogLevel != "error" || v.IdleTimeout != time.Hour || len(v.AllowedVariables) != 1 {
		t.Errorf("%+v", v)
	}
}

func TestSettingsThatDoNotFitAreRefusedByTheirNames(t *testing.T) {
	c := DefaultConfig()
	network, err := c.Network.options()
	if err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*settings.Values){
		"max_network":             func(v *settings.Values) { v.MaxNetwork = "wide" },
		"default_network":         func(v *settings.Values) { v.DefaultNetwork = "no such preset!" },
		"allowed_variables":       func(v *settings.Values) { v.AllowedVariables = []string{"["} },
		"command_timeout_seconds": func(v *settings.Values) { v.CommandTimeout = 48 * time.Hour },
	} {
		v := c.values()
		change(&v)
		_, _, err := c.engineSettings(v, sandbox.MaxLimits(), network.Rules)
		if e := fault.As(err); err == nil || len(e.Fields) != 1 || e.Fields[0].Name != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, _, err := c.engineSettings(c.values(), sandbox.MaxLimits(), network.Rules); err != nil {
		t.Errorf("what the configuration has: %v", err)
	}
	if levelName(slog.LevelWarn) != "warn" {
		t.Error(levelName(slog.LevelWarn))
	}
}
