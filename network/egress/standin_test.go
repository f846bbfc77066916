// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/sandbox"
)

// named is a bound secret with a value of its own.
func named(t *testing.T, s sandbox.Secret, value string) Bound {
	t.Helper()
	s.Hosts = []string{"allowed.example"}
	s, err := s.Normal()
	if err != nil {
		t.Fatal(err)
	}
	return Bound{s, value}
}

func TestAProgramChoosesAmongSecretsByTheirStandIns(t *testing.T) {
	basic := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	all := []Bound{
		named(t, sandbox.Secret{Name: "A"}, "value-of-a"),
		named(t, sandbox.Secret{Name: "A2"}, "value-of-a2"),
		named(t, sandbox.Secret{Name: "GIT", Format: "token {value}"}, "value-of-git"),
		named(t, sandbox.Secret{Name: "KEY", Header: "x-api-key"}, "value-of-key"),
		named(t, sandbox.Secret{Name: "OWN", Header: "x-own", StandInHeaders: []string{"x-mine"}}, "value-of-own"),
		named(t, sandbox.Secret{Name: "NONE", Header: "x-none", StandInHeaders: []string{}}, "value-of-none"),
		named(t, sandbox.Secret{Name: "WORD", Header: "none"}, "value-of-word"),
	}
	always := map[string]string{"Authorization": "Bearer value-of-a", "X-Api-Key": "value-of-key", "X-Own": "value-of-own", "X-None": "value-of-none"}
	for title, c := range map[string]struct {
		sent, want map[string]string // beside what is always there
		used       string            // of the secrets, those that are not always
	}{
		"nothing":                       {nil, nil, "A"},
		"no stand-in":                   {map[string]string{"Authorization": "Bearer own"}, nil, "A"},
		"the first":                     {map[string]string{"Authorization": "Bearer sandpit-secret-A"}, nil, "A"},
		"one with a longer name":        {map[string]string{"Authorization": "Bearer sandpit-secret-A2"}, map[string]string{"Authorization": "Bearer value-of-a2"}, "A2"},
		"one with a format of its own":  {map[string]string{"Authorization": "Bearer sandpit-secret-GIT"}, map[string]string{"Authorization": "token value-of-git"}, "GIT"},
		"without its format":            {map[string]string{"Authorization": "sandpit-secret-A2"}, map[string]string{"Authorization": "Bearer value-of-a2"}, "A2"},
		"one that there is not":         {map[string]string{"Authorization": "Bearer sandpit-secret-A3"}, nil, "A"},
		"a name and a password":         {map[string]string{"Authorization": basic("me:sandpit-secret-GIT")}, map[string]string{"Authorization": basic("me:value-of-git")}, "GIT"},
		"two in one":                    {map[string]string{"Authorization": basic("sandpit-secret-A:sandpit-secret-A2")}, map[string]string{"Authorization": basic("value-of-a:value-of-a2")}, "A A2"},
		"of another header":             {map[string]string{"Authorization": "ApiKey id=7, key=sandpit-secret-KEY;"}, map[string]string{"Authorization": "ApiKey id=7, key=value-of-key;"}, ""},
		"the usual header of another":   {map[string]string{"Private-Token": "sandpit-secret-GIT"}, map[string]string{"Private-Token": "value-of-git"}, "A GIT"},
		"its own header alone":          {map[string]string{"X-Mine": "<sandpit-secret-OWN>"}, map[string]string{"X-Mine": "<value-of-own>"}, "A"},
		"a usual header that it has no": {map[string]string{"X-Token": "sandpit-secret-OWN"}, map[string]string{"X-Token": "sandpit-secret-OWN"}, "A"},
		"one that has no header":        {map[string]string{"Authorization": "Bearer sandpit-secret-WORD", "None": "x"}, map[string]string{"Authorization": "Bearer value-of-word", "None": "x"}, "WORD"},
		"none for it":                   {map[string]string{"X-Token": "sandpit-secret-NONE"}, map[string]string{"X-Token": "sandpit-secret-NONE"}, "A"},
		"a header that is sent back":    {map[string]string{"Cookie": "sandpit-secret-A", "X-Request-Id": "sandpit-secret-A"}, map[string]string{"Cookie": "sandpit-secret-A", "X-Request-Id": "sandpit-secret-A"}, "A"},
		"spelled as servers take it":    {map[string]string{"X_api_key": "sandpit-secret-A2"}, map[string]string{"X_api_key": "value-of-a2", "X-Api-Key": ""}, "A A2 -KEY"},
		"basic that is none":            {map[string]string{"Authorization": "Basic !sandpit-secret-A2"}, map[string]string{"Authorization": "Bearer value-of-a2"}, "A2"},
	} {
		t.Run(title, func(t *testing.T) {
			h := make(http.Header)
			for name, v := range c.sent {
				h[name] = []string{v}
			}
			used := NewKeys(nil, all, nil).binding("allowed.example").put(h)
			for name, v := range always {
				if w, ok := c.want[name]; ok {
					v = w
				}
				if got := strings.Join(h[name], "|"); got != v {
					t.Errorf("%s is %q, want %q", name, got, v)
				}
			}
			for name, v := range c.want {
				if got := strings.Join(h[name], "|"); got != v {
					t.Errorf("%s is %q, want %q", name, got, v)
				}
			}
			want := []string{"KEY", "NONE", "OWN"}
			for _, n := range strings.Fields(c.used) {
				if without, ok := strings.CutPrefix(n, "-"); ok {
					want = slices.DeleteFunc(want, func(w string) bool { return w == without })
				} else {
					want = append(want, n)
				}
			}
			slices.Sort(want)
			if !slices.Equal(used, want) {
				t.Errorf("the secrets are %q, want %q", used, want)
			}
		})
	}
}

func TestARequestGrowsByAFewValuesAtMost(t *testing.T) {
	long := strings.Repeat("v", sandbox.MaxBoundValue)
	keys := NewKeys(nil, []Bound{named(t, sandbox.Secret{Name: "K", Header: "x-own"}, long)}, nil)
	h := http.Header{"X-Token": slices.Repeat([]string{strings.Repeat("sandpit-secret-K ", 100)}, 10)}
	keys.binding("allowed.example").put(h)
	size := 0
	for _, lines := range h {
		for _, l := range lines {
			size += len(l)
		}
	}
	if most := (maxStandIns+1)*len(long) + 10*100*len("sandpit-secret-K "); size > most {
		t.Errorf("the headers have %d bytes, want at most %d", size, most)
	}
}

// The host gets what the program chose, over both protocols, and no answer tells it.
func TestStandInsOnTheWire(t *testing.T) {
	g := guard(t, restricted("allowed.example"), echo, named(t, sandbox.Secret{Name: "KEY"}, value), named(t, sandbox.Secret{Name: "OTHER"}, "0ther/value"))
	for _, two := range []bool{false, true} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://allowed.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("me", "sandpit-secret-OTHER")
		req.Header.Set("X-Auth-Token", "sandpit-secret-KEY")
		req.Header.Set("Referer", "https://allowed.example/?sandpit-secret-KEY")
		resp, err := g.client(web, two).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		for _, r := range g.requests() {
			name, password, _ := r.BasicAuth()
			if name != "me" || password != "0ther/value" || r.Header.Get("X-Auth-Token") != value || r.Header.Get("Referer") != "https://allowed.example/?sandpit-secret-KEY" {
				t.Errorf("the host got %v", r.Header)
			}
		}
	}
	// Other hosts get the words as they are.
	g = guard(t, restricted("allowed.example", "other.example"), echo, secret("KEY", "allowed.example"))
	if status, _, body := g.do(g.client("93.184.216.9:443", true), "GET", "https://other.example/"); status != 200 || !strings.Contains(body, standIn) {
		t.Errorf("%d %q", status, body)
	}
}
