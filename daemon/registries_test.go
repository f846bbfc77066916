// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/fault"
)

func TestCredentialsOfRegistries(t *testing.T) {
	dir := t.TempDir()
	secret, docker := filepath.Join(dir, "secret"), filepath.Join(dir, "config.json")
	if err := os.WriteFile(secret, []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(docker, []byte(`{"auths":{"https://index.docker.io/v1/":{"auth":"bWU6ZHVjaw=="},"helper.example":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string { return map[string]string{"PASS": "word"}[name] }
	all, err := registriesOf([]RegistryConfig{
		{Name: "ghcr.io", Username: "me", PasswordEnv: "PASS"},
		{Name: "registry.corp:5000", Private: true, Username: "me", PasswordFile: secret},
		{Name: "docker.io", Mirrors: []string{"mirror.corp"}, DockerConfig: docker},
	}, getenv)
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	for i, want := range []string{"me:word", "me:hush", "me:duck"} {
		if got := all[i].Username + ":" + all[i].Password; got != want {
			t.Errorf("%s has %q, want %q", all[i].Name, got, want)
		}
	}
	for says, c := range map[string]RegistryConfig{
		"not the host":          {Name: "https://ghcr.io"},
		"not the host of":       {Name: "docker.io", Mirrors: []string{"a/b"}},
		"two places":            {Name: "a.io", Username: "x", PasswordEnv: "PASS", PasswordFile: secret},
		"credentials in two":    {Name: "a.io", Username: "x", DockerConfig: docker},
		"is not set":            {Name: "a.io", Username: "x", PasswordEnv: "NONE"},
		"not both":              {Name: "a.io", Username: "x"},
		"over http":             {Name: "a.io", Plain: true, Username: "x", PasswordEnv: "PASS"},
		"has no credentials":    {Name: "helper.example", DockerConfig: docker},
		"cannot be read":        {Name: "a.io", Username: "x", PasswordFile: filepath.Join(dir, "none")},
		"configuration of Dock": {Name: "a.io", DockerConfig: secret},
	} {
		if _, err := registriesOf([]RegistryConfig{c}, getenv); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", c, err, says)
		}
	}
}
