// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"slices"
	"strings"
	"testing"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	h := open(t)
	const value = "opensesame-1234"
	whole := func(a answer) string { return a.Header.Get("Location") + string(a.body) }
	a := h.do("PUT", "/v1/secrets/TOKEN", object{"value": value})
	if a.StatusCode != 200 || strings.Contains(whole(a), value) {
		t.Fatalf("got %d %s", a.StatusCode, a.body)
	}
	key := want[v1.Secret](h, 200, "PUT", "/v1/secrets/KEY", object{"value": value, "hosts": []string{"API.example.org"}, "header": "X-Key"})
	if key.Name != "KEY" || key.SandboxID != nil || !slices.Equal(key.Hosts, []string{"api.example.org"}) || key.Header != "x-key" || key.Format != "{value}" || key.UpdatedAt.IsZero() {
		t.Errorf("got %+v", key)
	}
	one := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "one", "secrets": object{
		"MINE": value + "-mine", "BOUND": object{"value": value, "hosts": []string{"*.example.net"}, "format": "key {value}"},
	}})
	want[v1.Secret](h, 200, "PUT", "/v1/sandboxes/one/secrets/TOKEN", object{"value": value + "-own"})

	t.Run("AreListedWithoutTheirValues", func(t *testing.T) {
		for path, names := range map[string][]string{
			"/v1/secrets": {"KEY", "TOKEN"}, "/v1/sandboxes/one/secrets": {"BOUND", "KEY", "MINE", "TOKEN"},
		} {
			a := h.do("GET", path, nil)
			l := want[v1.SecretList](h, 200, "GET", path, nil)
			var got []string
			for _, s := range l.Items {
				got = append(got, s.Name)
				if own := s.SandboxID != nil; own != (strings.Contains(path, "one") && s.Name != "KEY") || own && *s.SandboxID != one.ID {
					t.Errorf("%s: %s is of %v", path, s.Name, s.SandboxID)
				}
				if s.Hosts == nil {
					t.Errorf("%s: the hosts of %s are null", path, s.Name)
				}
			}
			if !slices.Equal(got, names) || strings.Contains(string(a.body), value) {
				t.Errorf("%s: got %s", path, a.body)
			}
		}
		if s := want[v1.Secret](h, 200, "GET", "/v1/sandboxes/one/secrets/BOUND", nil); s.Format != "key {value}" || s.Header != "authorization" {
			t.Errorf("got %+v", s)
		}
		want[v1.Secret](h, 200, "GET", "/v1/secrets/TOKEN", nil)
		want[v1.Problem](h, 404, "GET", "/v1/secrets/MINE", nil)
	})
	t.Run("ReachCommandsAndAreMasked", func(t *testing.T) {
		r := want[v1.ExecResult](h, 200, "POST", "/v1/sandboxes/one/exec", object{"command": `echo "$TOKEN ${#TOKEN} $BOUND $KEY"`})
		if got := strings.Repeat("*", 19) + " 19 sandpit-secret-BOUND sandpit-secret-KEY\n"; r.Stdout != got {
			t.Errorf("got %q, want %q", r.Stdout, got)
		}
		h.do("POST", "/v1/sandboxes/one/exec", object{"command": "true " + value})
		if a := h.do("GET", "/v1/sandboxes/one/activity", nil); strings.Contains(string(a.body), value) || !strings.Contains(string(a.body), "secret.set") {
			t.Errorf("the activity is %s", a.body)
		}
	})
	t.Run("AreRefusedByField", func(t *testing.T) {
		for _, c := range []struct {
			method, path string
			body         any
			field        string
		}{
			{"PUT", "/v1/secrets/A-B", object{"value": value}, "name"},
			{"PUT", "/v1/secrets/A", object{}, "value"},
			{"PUT", "/v1/secrets/A", object{"value": "abc"}, "value"},
			{"PUT", "/v1/secrets/A", object{"value": value, "hosts": []string{"http://x"}}, "hosts"},
			{"PUT", "/v1/secrets/A", object{"value": value, "host": "x.org"}, "host"},
			{"PUT", "/v1/secrets/A", object{"value": value, "header": "x"}, "hosts"},
			{"PUT", "/v1/secrets/A", object{"value": []string{value}}, "value"},
			{"POST", "/v1/sandboxes", object{"secrets": object{"A": "abc"}}, "secrets.A.value"},
			{"POST", "/v1/sandboxes", object{"secrets": object{"A": 1}}, "secrets.A"},
			{"POST", "/v1/sandboxes", object{"secrets": object{"A": nil}}, "secrets.A"},
			{"POST", "/v1/sandboxes", object{"secrets": object{"A": object{"value": value, "hosts": "x.org"}}}, "secrets.A.hosts"},
			{"POST", "/v1/sandboxes", object{"secrets": object{"A": object{"value": value, "host": "x"}}}, "secrets.A.host"},
			{"POST", "/v1/sandboxes", object{"secrets": object{"A": object{"value": 1}}}, "secrets.A.value"},
			{"POST", "/v1/sandboxes", object{"secrets": []string{value}}, "secrets"},
			{"POST", "/v1/sandboxes", `{"secrets":{"A":"long enough","A":"long enough"}}`, "secrets.A"},
			{"POST", "/v1/sandboxes", `{"secrets":{"A":{"value":"long enough","value":"x"}}}`, "secrets.A.value"},
		} {
			p := want[v1.Problem](h, 422, c.method, c.path, c.body)
			if len(p.Errors) == 0 || p.Errors[0].Field != c.field {
				t.Errorf("%s %v: got %+v, want the field %s", c.path, c.body, p, c.field)
			}
		}
	})
	t.Run("NeedTheirScopes", func(t *testing.T) {
		writer := h.as("default", access.SandboxesRead, access.SandboxesWrite)
		want[v1.Problem](writer, 403, "PUT", "/v1/secrets/TOKEN", object{"value": value})
		want[v1.Problem](writer, 403, "DELETE", "/v1/secrets/TOKEN", nil)
		want[v1.Secret](writer, 200, "PUT", "/v1/sandboxes/one/secrets/MINE", object{"value": value})
		want[v1.SecretList](writer, 200, "GET", "/v1/secrets", nil)
		other := h.as("other", access.SandboxesRead, access.SandboxesWrite)
		want[v1.Problem](other, 404, "GET", "/v1/sandboxes/"+one.ID+"/secrets", nil)
		if l := want[v1.SecretList](other, 200, "GET", "/v1/secrets", nil); len(l.Items) != 0 {
			t.Errorf("another project sees %+v", l)
		}
	})
	t.Run("AreDeleted", func(t *testing.T) {
		want[any](h, 204, "DELETE", "/v1/sandboxes/one/secrets/TOKEN", nil)
		if s := want[v1.Secret](h, 200, "GET", "/v1/sandboxes/one/secrets/TOKEN", nil); s.SandboxID != nil {
			t.Errorf("the project's does not hold again: %+v", s)
		}
		want[any](h, 204, "DELETE", "/v1/secrets/TOKEN", nil)
		if p := want[v1.Problem](h, 404, "DELETE", "/v1/secrets/TOKEN", nil); p.Remedy == "" {
			t.Errorf("got %+v", p)
		}
		want[v1.Problem](h, 404, "PUT", "/v1/sandboxes/none/secrets/A", object{"value": value})
	})
}
