// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"reflect"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	v1 "sandpit.dev/api/v1"
)

func TestWhoami(t *testing.T) {
	t.Parallel()
	h := open(t)
	t.Run("ATokenWithoutScopesOfSandboxes", func(t *testing.T) {
		made := want[v1.CreatedToken](h, 201, "POST", "/v1/tokens", object{"name": "desk", "project": "p", "scopes": []string{"tools:core"}, "expires_in_seconds": 3600})
		other := *h
		other.token = made.Secret
		got := want[v1.Whoami](&other, 200, "GET", "/v1/whoami", nil)
		if wanted := (v1.Whoami{TokenID: &made.ID, Name: "desk", Project: "p", Scopes: []string{"tools:core"}, ExpiresAt: made.ExpiresAt}); !reflect.DeepEqual(got, wanted) {
			t.Errorf("got %+v, want %+v", got, wanted)
		}
		if got.ExpiresAt == nil || got.ExpiresAt.Location() != time.UTC {
			t.Errorf("it expires at %v", got.ExpiresAt)
		}
	})
	t.Run("OneThatNeverExpires", func(t *testing.T) {
		if got := want[v1.Whoami](h.as("q", access.SandboxesRead), 200, "GET", "/v1/whoami", nil); got.ExpiresAt != nil || got.Project != "q" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("TheServersOwn", func(t *testing.T) {
		got := want[v1.Whoami](h, 200, "GET", "/v1/whoami", nil)
		if wanted := (v1.Whoami{Name: "admin-token", Project: "default", Scopes: []string{"admin", "server:admin"}}); !reflect.DeepEqual(got, wanted) {
			t.Errorf("got %+v, want %+v", got, wanted)
		}
	})
	t.Run("WhatQuotasLeave", func(t *testing.T) {
		got := want[v1.Whoami](h, 200, "GET", "/v1/whoami", nil, guard.ProjectHeader, "p") // the server's own in that project
		if got.Project != "p" || got.Left != nil {
			t.Errorf("without quotas: %+v", got)
		}
		want[v1.Project](h, 200, "PATCH", "/v1/projects/p", object{"quotas": object{"sandboxes": 3, "cpu_cores": 0.5, "volumes": 1}})
		other := h.as("p", access.ToolsCore)
		want[v1.Volume](h.as("p"), 201, "POST", "/v1/volumes", object{"name": "one"})
		want[v1.Sandbox](h.as("p"), 201, "POST", "/v1/sandboxes", object{"cpu_cores": 0.25})
		got = want[v1.Whoami](other, 200, "GET", "/v1/whoami", nil)
		if left := (v1.Amounts{Sandboxes: new(int64(2)), CPUCores: new(0.25), Volumes: new(int64(0))}); !reflect.DeepEqual(got.Left, &left) {
			t.Errorf("got %+v", got.Left)
		}
		if got := want[v1.Whoami](h, 200, "GET", "/v1/whoami", nil); got.Left != nil {
			t.Errorf("another project has left %+v", got.Left)
		}
	})
	t.Run("WithoutAToken", func(t *testing.T) {
		other := *h
		other.token = ""
		if a := other.do("GET", "/v1/whoami", nil); a.StatusCode != 401 {
			t.Errorf("got %s", a.Status)
		}
	})
}
