// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
)

func TestVolumes(t *testing.T) {
	t.Parallel()
	h := open(t)
	a := h.do("POST", "/v1/volumes", object{"name": "my data"})
	v := want[v1.Volume](h, 200, "GET", a.Header.Get("Location"), nil)
	if a.StatusCode != 201 || v.Name != "my data" || v.Status != "ready" || v.SizeMB != 0 || v.Users == nil || v.CreatedBy == "" {
		t.Errorf("got %d %s", a.StatusCode, a.body)
	}
	if p := want[v1.Problem](h, 409, "POST", "/v1/volumes", object{"name": "my data"}); p.Code != "exists" || p.Remedy == "" {
		t.Errorf("got %+v", p)
	}
	one := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "one", "volumes": []object{{"volume": "my data", "path": "/mnt/data"}}})
	two := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"volumes": []object{{"volume": v.ID, "path": "/mnt/in", "sub_path": "sub", "read_only": true}}})
	if want := []v1.Mount{{Volume: "my data", VolumeID: v.ID, Path: "/mnt/in", SubPath: "sub", ReadOnly: true}}; !slices.Equal(two.Volumes, want) {
		t.Errorf("got %+v, want %+v", two.Volumes, want)
	}
	l := want[v1.VolumeList](h, 200, "GET", "/v1/volumes", nil)
	users := []string{one.ID, two.ID}
	slices.Sort(users)
	if len(l.Items) != 1 || !slices.Equal(l.Items[0].Users, users) {
		t.Errorf("got %+v, want the users %v", l, users)
	}
	if f := want[v1.SandboxList](h, 201, "POST", "/v1/sandboxes/one/fork", nil).Items[0]; !slices.Equal(f.Volumes, one.Volumes) {
		t.Errorf("a fork mounts %+v, want %+v", f.Volumes, one.Volumes)
	} else {
		want[any](h, 204, "DELETE", "/v1/sandboxes/"+f.ID, nil)
	}

	t.Run("AreKeptWhileTheyAreMounted", func(t *testing.T) {
		p := want[v1.Problem](h, 409, "DELETE", "/v1/volumes/my%20data", nil)
		if p.Code != "conflict" || !strings.Contains(p.Detail+p.Remedy, "one") || p.Remedy == "" {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("ChangeWhileTheSandboxIsStopped", func(t *testing.T) {
		if p := want[v1.Problem](h, 409, "PATCH", "/v1/sandboxes/one", object{"volumes": []object{}}); p.Code != "state" || !strings.Contains(p.Remedy, "stop") {
			t.Errorf("got %+v", p)
		}
		want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/one/stop", nil)
		if s := want[v1.Sandbox](h, 200, "PATCH", "/v1/sandboxes/one", object{"volumes": []object{}}); s.Volumes == nil || len(s.Volumes) != 0 {
			t.Errorf("got %+v", s.Volumes)
		}
		want[v1.Sandbox](h, 200, "PATCH", "/v1/sandboxes/one", `{"volumes":null}`)
	})
	t.Run("AreAnotherProjectsSecret", func(t *testing.T) {
		other := h.as("other", access.SandboxesRead, access.SandboxesWrite)
		want[v1.Problem](other, 404, "GET", "/v1/volumes/"+v.ID, nil)
		want[v1.Problem](other, 404, "DELETE", "/v1/volumes/my%20data", nil)
		if l := want[v1.VolumeList](other, 200, "GET", "/v1/volumes", nil); len(l.Items) != 0 || l.Items == nil {
			t.Errorf("got %+v", l)
		}
		if a := other.do("POST", "/v1/sandboxes", object{"volumes": []object{{"volume": v.ID, "path": "/mnt"}}}); a.StatusCode != 404 && a.StatusCode != 422 {
			t.Errorf("a mount of it: got %d %s", a.StatusCode, a.body)
		}
		want[v1.Volume](other, 201, "POST", "/v1/volumes", object{"name": "my data"})
	})
	t.Run("AreDeleted", func(t *testing.T) {
		want[any](h, 204, "DELETE", "/v1/sandboxes/"+two.ID, nil)
		want[any](h, 204, "DELETE", "/v1/volumes/my%20data", nil)
		want[v1.Problem](h, 404, "DELETE", "/v1/volumes/my%20data", nil)
	})
	t.Run("HaveALifetime", func(t *testing.T) {
		v := want[v1.Volume](h, 201, "POST", "/v1/volumes", object{"name": "short", "lifetime_seconds": 7200})
		if v.Lifetime == nil || *v.Lifetime != 7200 || v.ExpiresAt == nil || !v.ExpiresAt.Equal(v.CreatedAt.Add(2*time.Hour)) {
			t.Errorf("got %+v", v)
		}
		if v = want[v1.Volume](h, 200, "PATCH", "/v1/volumes/short", object{"lifetime_seconds": 315360000}); *v.Lifetime != 315360000 || !v.ExpiresAt.Equal(v.CreatedAt.Add(3650*24*time.Hour)) {
			t.Errorf("got %+v", v)
		}
		if v = want[v1.Volume](h, 200, "PATCH", "/v1/volumes/short", object{}); v.Lifetime == nil {
			t.Errorf("nothing was said: got %+v", v)
		}
		if v = want[v1.Volume](h, 200, "PATCH", "/v1/volumes/short", object{"lifetime_seconds": 0}); v.Lifetime != nil || v.ExpiresAt != nil {
			t.Errorf("got %+v", v)
		}
		for _, seconds := range []string{"-1", "315360001", "9223372036854775807", "1.5", `"1h"`} {
			for method, path := range map[string]string{"POST": "/v1/volumes", "PATCH": "/v1/volumes/short"} {
				name := ""
				if method == "POST" {
					name = `"name":"y",`
				}
				p := want[v1.Problem](h, 422, method, path, `{`+name+`"lifetime_seconds":`+seconds+`}`)
				if len(p.Errors) != 1 || p.Errors[0].Field != "lifetime_seconds" {
					t.Errorf("%s %s: got %+v", method, seconds, p)
				}
			}
		}
		want[v1.Problem](h, 404, "PATCH", "/v1/volumes/none", object{"lifetime_seconds": 1})
		want[v1.Problem](h.as("reader", access.SandboxesRead), 403, "PATCH", "/v1/volumes/short", object{"lifetime_seconds": 1})
		want[any](h, 204, "DELETE", "/v1/volumes/short", nil)
	})
	t.Run("AreRefusedWithTheReason", func(t *testing.T) {
		for body, field := range map[string]string{
			`{}`: "name", `{"name":""}`: "name", `{"name":"a/b"}`: "name", `{"name":"x","size_mb":-1}`: "size_mb", `{"name":"x","size_mb":1048577}`: "size_mb",
			`{"name":"x","runtime":"nosuch"}`: "runtime", `{"name":"x","size":1}`: "size", `{"name":1}`: "name",
		} {
			p := want[v1.Problem](h, 422, "POST", "/v1/volumes", body)
			if len(p.Errors) != 1 || p.Errors[0].Field != field {
				t.Errorf("%s: got %+v, want the field %s", body, p, field)
			}
		}
		want[v1.Volume](h, 201, "POST", "/v1/volumes", object{"name": "there"})
		total := want[v1.SandboxPage](h, 200, "GET", "/v1/sandboxes", nil).Total
		for _, volumes := range []string{
			`[{"volume":"there"}]`, `[{"path":"/mnt"}]`, `[{"volume":"there","path":"mnt"}]`, `[{"volume":"there","path":"/"}]`, `[{"volume":"there","path":"/mnt/../etc"}]`,
			`[{"volume":"there","path":"/mnt","sub_path":"../x"}]`, `[{"volume":"there","path":"/mnt","sub_path":"/abs"}]`,
			`[{"volume":"there","path":"/proc/x"}]`, `[{"volume":"there","path":"/a"},{"volume":"there","path":"/a"}]`,
			"[" + strings.Repeat(`{"volume":"there","path":"/a"},`, 16) + `{"volume":"there","path":"/a"}]`,
		} {
			p := want[v1.Problem](h, 422, "POST", "/v1/sandboxes", `{"volumes":`+volumes+`}`)
			if len(p.Errors) == 0 || !strings.HasPrefix(p.Errors[0].Field, "volumes") {
				t.Errorf("%s: got %+v, want a field volumes…", volumes, p)
			}
		}
		if now := want[v1.SandboxPage](h, 200, "GET", "/v1/sandboxes", nil).Total; now != total {
			t.Errorf("there are %d sandboxes, want %d", now, total)
		}
	})
}
