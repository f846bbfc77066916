// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/images"
	"sandpit.dev/sandbox"
)

func TestTemplates(t *testing.T) {
	t.Parallel()
	h := open(t)
	is := func(what string, got answer, status int, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(string(got.body), part) {
				t.Errorf("%s: no %s in %s", what, part, got.body)
			}
		}
		if got.StatusCode != status {
			t.Errorf("%s: got %d, want %d: %s", what, got.StatusCode, status, got.body)
		}
	}
	web := v1.CreateTemplate{
		Name: "web", Base: new("node"), MemoryMB: new(128), Env: map[string]string{"A": "1"}, Network: "off",
		Start: new("echo served > served; exec sleep 1000"), Ready: &v1.ReadyProbe{Command: "test -s served", IntervalSeconds: new(0.05)},
	}
	is("made", h.do("POST", "/v1/templates", web), http.StatusCreated, `"id":"tmpl_`, `"version":1`, `"image":"node"`, `"mode":"off"`, `"timeout_seconds":60`)
	is("the same again", h.do("POST", "/v1/templates", web), http.StatusOK, `"version":1`)
	is("listed", h.do("GET", "/v1/templates?name=web", nil), http.StatusOK, `"total":1`)
	is("another name", h.do("GET", "/v1/templates?name=x", nil), http.StatusOK, `"items":[]`)
	is("got", h.do("GET", "/v1/templates/web@1", nil), http.StatusOK, `"env":{"A":"1"}`)
	is("not there", h.do("GET", "/v1/templates/web@2", nil), http.StatusNotFound)
	is("a sandbox of it", h.do("POST", "/v1/sandboxes", v1.CreateSandbox{Template: new("web"), Key: new("k")}), http.StatusCreated,
		`"name":"web","version":1,"chosen_by":"explicit"`, `"ready":true`, `"process_id":"`, `"memory_mb":128`, `"network":"off"`, `"image":"node"`)
	is("again", h.do("POST", "/v1/sandboxes", v1.CreateSandbox{Template: new("web"), Key: new("k")}), http.StatusOK, `"version":1`)
	is("a command in one", h.do("POST", "/v1/exec", v1.CreateExec{Exec: v1.Exec{Command: new("cat served")}, Sandbox: v1.CreateSandbox{Template: new("web")}}), http.StatusOK, `served`)
	is("an image's name", h.do("POST", "/v1/sandboxes", v1.CreateSandbox{Template: new("python-3.12")}), http.StatusCreated, `"template":{"id":null,"name":null,"version":null,"chosen_by":"explicit"}`, `"requested_image":"python-3.12"`)
	is("nothing", h.do("POST", "/v1/sandboxes", v1.CreateSandbox{}), http.StatusCreated, `"chosen_by":"fallback"`)
	is("an unknown one", h.do("POST", "/v1/sandboxes", v1.CreateSandbox{Template: new("nothing")}), http.StatusNotFound, `no template and no image`)
	is("two images", h.do("POST", "/v1/sandboxes", v1.CreateSandbox{Template: new("python"), Image: new("node")}), http.StatusUnprocessableEntity)
	is("an empty one", h.do("POST", "/v1/sandboxes", v1.CreateSandbox{Template: new("")}), http.StatusUnprocessableEntity)
	is("the default", h.do("PATCH", "/v1/templates/web", v1.UpdateTemplate{Default: new(true)}), http.StatusOK, `"default":true`)
	is("no change", h.do("PATCH", "/v1/templates/web", map[string]any{}), http.StatusUnprocessableEntity)
	is("a change of what never changes", h.do("PATCH", "/v1/templates/web", map[string]any{"image": "python"}), http.StatusUnprocessableEntity)
	is("by the default", h.do("POST", "/v1/sandboxes", v1.CreateSandbox{}), http.StatusCreated, `"chosen_by":"project"`)
	is("a probe of nothing", h.do("POST", "/v1/templates", v1.CreateTemplate{Name: "x", Start: new("true"), Ready: &v1.ReadyProbe{}}), http.StatusUnprocessableEntity, `"ready"`)
	is("a name", h.do("POST", "/v1/templates", v1.CreateTemplate{Name: "../x"}), http.StatusUnprocessableEntity, `"name"`)
	is("steps", h.do("POST", "/v1/templates", v1.CreateTemplate{Name: "built", Steps: []string{"true"}}), http.StatusAccepted, `"status":"building"`)

	other := h.as("other", access.SandboxesRead, access.SandboxesWrite)
	is("of another project", other.do("GET", "/v1/templates/web", nil), http.StatusNotFound)
	is("for all, by a project", other.do("POST", "/v1/templates", v1.CreateTemplate{Name: "x", Server: true}), http.StatusForbidden)
	is("for all", h.do("POST", "/v1/templates", v1.CreateTemplate{Name: "all", Server: true, Default: true}), http.StatusCreated, `"server":true`, `"default":true`)
	is("another project's create", other.do("POST", "/v1/sandboxes", v1.CreateSandbox{}), http.StatusCreated, `"chosen_by":"server"`)
	is("deleted", h.do("DELETE", "/v1/templates/web", nil), http.StatusNoContent)
	is("gone", h.do("GET", "/v1/templates/web", nil), http.StatusNotFound)
	is("its sandbox stays", h.do("GET", "/v1/sandboxes/k", nil), http.StatusOK, `"name":"web"`)

	bare := open(t, func(o *rest.Options) { o.Services.Templates = nil })
	is("without templates", bare.do("GET", "/v1/templates", nil), http.StatusNotImplemented)
}

func TestPoolsOfAnImage(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	h := open(t, func(o *rest.Options) { o.Services.Keeper = s })
	got := h.do("GET", "/v1/images/python/pool", nil)
	if text := string(got.body); got.StatusCode != http.StatusOK || !strings.Contains(text, `"image":"python","ready":3`) || !strings.Contains(text, `"refill":2,"template":"web@1","recent":false`) {
		t.Errorf("%d %s", got.StatusCode, text)
	}
	got = h.do("PATCH", "/v1/images/python/pool", v1.UpdateImagePool{Min: new(2)})
	if got.StatusCode != http.StatusOK {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if want := (images.PoolChange{Image: "python", Min: new(2)}); !reflect.DeepEqual(s.pool, want) {
		t.Errorf("asked for %+v, want %+v", s.pool, want)
	}
	got = h.do("PATCH", "/v1/images/python/pool", object{"pool": "big", "size": "large", "memory_mb": 2048, "pids": 100})
	if want := (images.PoolChange{Image: "python", Pool: "big", Limits: sandbox.Limits{CPU: 4, MemoryMB: 2048, Pids: 100}}); got.StatusCode != http.StatusOK || !reflect.DeepEqual(s.pool, want) {
		t.Errorf("%d %s: asked for %+v, want %+v", got.StatusCode, got.body, s.pool, want)
	}
	for body, says := range map[string]string{`{"size":"huge"}`: "use small, medium, large", `{"size":"small","disk_mb":1}`: "disk_mb"} {
		if got = h.do("PATCH", "/v1/images/python/pool", body); got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(got.body), says) {
			t.Errorf("%s: %d %s", body, got.StatusCode, got.body)
		}
	}
	if got = h.do("PATCH", "/v1/images/python/pool", v1.UpdateImagePool{Pool: new("x")}); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}
