// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"sandpit.dev/network/preview"
)

func TestWhatMayBeShownInAFrame(t *testing.T) {
	program := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Frame-Options", "DENY")
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
	}
	own := preview.Framers{Hosts: []string{"box.example", "api.box.example", "127.0.0.1", "10.1.2.3", "::1", "0.0.0.0", "localhost", "box.example", "odd; name"}}
	for _, c := range []struct {
		name, domain string
		framers      preview.Framers
		at           string // what is behind the link's name
		scheme, want string
	}{
		{"as shipped", "localhost", preview.Framers{Hosts: []string{"127.0.0.1"}}, ":8080", "http", "'self' http://localhost:8080 http://127.0.0.1:8080"},
		{"below a domain", "box.example", own, "", "https", "'self' https://box.example https://api.box.example https://10.1.2.3"},
		{"below one of its own", "previews.example", own, ":8443", "https", "'self' https://box.example:8443 https://api.box.example:8443 https://10.1.2.3:8443"},
		{"without the console", "box.example", preview.Framers{}, "", "https", "'self'"},
		{"of origins that the operator named", "box.example", preview.Framers{Origins: []string{"https://app.example"}}, "", "https", "'self' https://app.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := openAt(t, c.domain, program, func(o *preview.Options) { o.Framers = c.framers })
			h.grant(onRecord, preview.Grant{Project: "default", Sandbox: web, Port: 8000})
			a := h.get("8000-"+h.links.HostToken(onRecord)+"."+c.domain+c.at, "/", "X-Forwarded-Proto", c.scheme).want(t, 200)
			if got := a.Header["Content-Security-Policy"]; len(got) != 2 || got[0] != "default-src 'self'" || got[1] != "frame-ancestors "+c.want {
				t.Errorf("the policies are %q", got)
			}
			// No other answer names a page of the server's.
			for what, a := range map[string]answer{
				"by a token":   h.get("8000-"+web+"."+c.domain+c.at, "/", "Authorization", "Bearer "+owner),
				"by path":      h.get(h.addr, inPath(h.link(web, 8000))+"/"),
				"a link's too": h.get(h.addr, "/preview/"+h.links.HostToken(onRecord)+"/8000/"),
			} {
				for _, policy := range a.want(t, 200).Header["Content-Security-Policy"] {
					if len(policy) > 5 && policy[:5] == "frame" {
						t.Errorf("%s: the policy is %q", what, policy)
					}
				}
			}
		})
	}
}

func TestWhereThePagesOfTheServerLoadFramesFrom(t *testing.T) {
	framers := preview.Framers{Hosts: []string{"box.example", "127.0.0.1"}}
	for _, c := range []struct {
		domain  string
		framers preview.Framers
		host    string
		headers []string
		want    string
	}{
		{"localhost", framers, "127.0.0.1:8080", nil, "http://*.localhost:8080"},
		{"localhost", framers, "localhost", nil, "http://*.localhost"},
		{"localhost", framers, "localhost:8080", []string{"X-Forwarded-Proto", "https"}, "https://*.localhost:8080"},
		{"localhost", framers, "localhost:8080", []string{"X-Forwarded-Host", "box.example"}, ""}, // it leads to the asker's own machine
		{"localhost", framers, "box.example:8080", nil, ""},
		{"localhost", framers, "x.localhost:8080", nil, ""},
		{"localhost", framers, "[::1]:8080", nil, ""},
		{"localhost", preview.Framers{}, "localhost:8080", nil, ""},
		{"box.example", framers, "box.example", []string{"X-Forwarded-Proto", "https"}, "https://*.box.example"},
		{"box.example", framers, "BOX.example.:443", nil, "http://*.box.example:443"},
		{"box.example", framers, "127.0.0.1:8080", nil, ""},
		{"box.example", framers, "other.example", nil, ""},
		{"box.example", framers, "box.example:80;script-src", nil, ""},
		{"", framers, "box.example", nil, ""},
	} {
		h := openAt(t, c.domain, mirror, func(o *preview.Options) { o.Framers = c.framers })
		r := httptest.NewRequest("GET", "/console/", nil)
		r.Host = c.host
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Set(c.headers[i], c.headers[i+1])
		}
		if got := h.proxy.FrameSource(r); got != c.want {
			t.Errorf("%s with previews below %q: got %q, want %q", c.host, c.domain, got, c.want)
		}
	}
}
