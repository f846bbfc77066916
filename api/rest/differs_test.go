// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "sandpit.dev/api/v1"
)

func TestACreateSaysWhereTheSandboxThatIsThereDiffers(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := object{"key": "web", "memory_mb": 256, "env": object{"A": "1"}, "idle_timeout_seconds": 600, "auto_start": true}
	if s := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", first); s.Differs != nil {
		t.Errorf("a new one: %v", s.Differs)
	}
	for _, c := range []struct {
		body object
		want []string
	}{
		{first, nil},
		{object{"key": "web"}, nil},
		{object{"key": "web", "network": "off", "checkpoints": "off", "env": object{"A": "1"}}, nil},
		{object{"key": "web", "memory_mb": 512, "cpu_cores": 0.5, "pids": 99}, []string{"cpu_cores", "memory_mb", "pids"}},
		{object{"key": "web", "env": object{"A": "2"}, "metadata": object{"team": "data"}, "network": "open"}, []string{"env", "metadata", "network"}},
		{object{"key": "web", "idle_timeout_seconds": 0, "idle_action": "pause", "retention_seconds": 5, "ttl_seconds": 600, "auto_delete": true, "auto_start": false},
			[]string{"idle_timeout_seconds", "idle_action", "retention_seconds", "ttl_seconds", "auto_delete", "auto_start"}},
	} {
		if s := want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes", c.body); !cmp.Equal(s.Differs, c.want) {
			t.Errorf("%v: %v, want %v", c.body, s.Differs, c.want)
		}
	}
	r := want[v1.CreateExecResult](h, 200, "POST", "/v1/exec", object{"command": "true", "sandbox": object{"key": "web", "memory_mb": 512}})
	if !cmp.Equal(r.SandboxDiffers, []string{"memory_mb"}) || r.SandboxCreated {
		t.Errorf("%+v", r.ExecPlace)
	}
}
