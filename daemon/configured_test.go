// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/settings"
)

func TestTheConfigurationIsToldWithItsSourcesAndWithoutSecrets(t *testing.T) {
	c := DefaultConfig()
	file := `
admin_token: a-secret-of-the-file
domain: box.example
hosts: [a.example]
log: {level: warn, max_mb: 7}
tracing: {endpoint: "http://trace.example/", headers: {Authorization: a-secret-header}}
templates: {web: {image: python, env: {KEY: a-secret-variable}}}
images: {registries: [{name: r.example, username: u, mirrors: ["https://a-secret-user@mirror.example"]}]}
runs: {artifacts: {max_mb: 9}}
pools: [{min: 1, image: node}]
tls: {cert: c.pem, key: k.pem}
`
	if err := c.ReadFile(write(t, file)); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"SANDPIT_LOG_LEVEL": "debug", "SANDPIT_DATA": t.TempDir(), "SANDPIT_SECRETS_KEY": "a-secret-key", "SANDPIT_ADMIN_TOKEN": "a-secret-of-the-environment-that-is-long"}
	if err := c.ReadEnv(func(name string) string { return env[name] }); err != nil {
		t.Fatal(err)
	}
	c.Listen = "127.0.0.1:9999"
	c.NoteFlags()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	told := make(map[string]settings.Configured)
	for _, one := range c.configured() {
		told[one.Key] = one
	}
	for key, want := range map[string]settings.Configured{
		"listen":                          {Value: "127.0.0.1:9999", Source: settings.Flag},
		"data":                            {Value: env["SANDPIT_DATA"], Source: settings.Environment},
		"domain":                          {Value: "box.example", Source: settings.File},
		"preview.domain":                  {Value: "box.example", Source: settings.Default}, // it follows from domain
		"log.level":                       {Value: "debug", Source: settings.Environment, Setting: "log_level"},
		"log.max_mb":                      {Value: int64(7), Source: settings.File},
		"log.format":                      {Value: "text", Source: settings.Default},
		"admin_token":                     {Value: redacted, Secret: true, Source: settings.Environment},
		"tracing.endpoint":                {Value: "http://trace.example/", Source: settings.File},
		"tracing.headers":                 {Value: map[string]any{"Authorization": redacted}, Secret: true, Source: settings.File},
		"tracing.sample":                  {Value: nil, Source: settings.Default},
		"runs.artifacts.max_mb":           {Value: int64(9), Source: settings.File},
		"defaults.idle_timeout":           {Value: c.Defaults.IdleTimeout.String(), Source: settings.Default, Setting: "idle_timeout_seconds"},
		"network.curated":                 {Value: []any{}, Source: settings.Default},
		"overcommit.in_use.load_per_core": {Value: float64(defaultLoadPerCore), Source: settings.Default},
	} {
		want.Key = key
		if got := told[key]; !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	text, err := json.Marshal(slices.Collect(maps.Values(told)))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "a-secret") {
		t.Errorf("a secret is told: %s", text)
	}
	for _, part := range []string{`"KEY":"[redacted]"`, `"mirrors":["https://[redacted]@mirror.example"]`, `"password_env":""`, `"image":"node"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s is not told: %s", part, text)
		}
	}
}

// TestWhatSoundsSecretIsMarked holds each key whose name says secrets: it is marked, or named here with why it is none.
func TestWhatSoundsSecretIsMarked(t *testing.T) {
	none := map[string]bool{
		"tls.key": true, "secrets.key_file": true, "archive.s3.credentials_file": true, "kubernetes.snapshots.s3.credentials_file": true, "clusters.snapshots.s3.credentials_file": true, "images.registries.password_file": true, // names of files
		"images.registries.password_env": true,                                // the name of a variable
		"limits.requests.token":          true,                                // a rate
		"kubernetes.pull_secrets":        true, "clusters.pull_secrets": true, // names of objects of the cluster
		"kubernetes.tolerations.key": true, "clusters.tolerations.key": true, // of a label of nodes
	}
	sounds := regexp.MustCompile(`(?i)(token|secret|passw|key|credential|header|cookie|env)`)
	var look func(of reflect.Type, path string)
	look = func(of reflect.Type, path string) {
		for f := range of.Fields() {
			name, inline := keyOf(f)
			if name == "" && !inline {
				continue
			}
			key, marked := below(path, name), f.Tag.Get("secret") == "true"
			if inline {
				key = path
			}
			is := f.Type
			for is.Kind() == reflect.Slice || is.Kind() == reflect.Map || is.Kind() == reflect.Pointer {
				is = is.Elem()
			}
			switch {
			case is.Kind() == reflect.Struct:
				look(is, key)
			case sounds.MatchString(name) && marked == none[key]:
				t.Errorf("%s sounds like a secret: marked %t", key, marked)
			}
		}
	}
	look(reflect.TypeFor[Config](), "")
}

func TestSettingsBeginWithKeysThatThereAre(t *testing.T) {
	c := DefaultConfig()
	keys := make(map[string]bool)
	for _, one := range c.configured() {
		keys[one.Key] = true
	}
	for key := range startValues() {
		if !keys[key] {
			t.Errorf("there is no key %s", key)
		}
	}
	named := append(slices.Collect(maps.Values(startValues())), "max_sandboxes", "pools_enabled") // one of quotas, and none of the file's
	slices.Sort(named)
	all := slices.Sorted(slices.Values(settings.Names()))
	if !slices.Equal(named, all) {
		t.Errorf("keys begin %q, and the settings are %q", named, all)
	}
}
