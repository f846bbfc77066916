// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"strings"
	"testing"
	"time"
)

// FuzzPlaces holds that an address leads to one port of one sandbox, or nowhere, and that no token is taken that is not ours.
func FuzzPlaces(f *testing.F) {
	links, err := NewLinks(make([]byte, KeySize), "preview.example")
	if err != nil {
		f.Fatal(err)
	}
	nowhere, err := NewLinks(make([]byte, KeySize), "")
	if err != nil {
		f.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	right := Grant{Project: "default", Sandbox: "abcdefgh12345678", Port: 8000, Expires: now.Add(time.Hour), Link: "l"}
	made := links.Token(right)
	f.Add(Root+"abcdefgh12345678/8000/x", "8000-abcdefgh12345678.preview.example:443", made)
	f.Add(Root+"%2e%2e/08000//", "8000-a.b.preview.example", strings.Replace(made, ".8000.", ".9000.", 1))
	f.Add(Root, "8000-"+links.HostToken("abcdefgh12345678")+".preview.example", "spp_l")
	f.Add(Root, "-.preview.example", "spp_l......")
	f.Fuzz(func(t *testing.T, path, host, token string) {
		p, rest, err := links.byPath(path)
		if err == nil && (p.prefix+rest != path || p.port < 1 || p.port > 65535) {
			t.Errorf("%q is %+v and %q", path, p, rest)
		}
		if p, ours, err := links.byHost(host); err == nil && ours && (p.port < 1 || p.port > 65535 || p.prefix != "" || p.link != "" && p.link != "abcdefgh12345678") {
			t.Errorf("%q is %+v", host, p)
		}
		if _, ours, _ := nowhere.byHost(host); ours {
			t.Errorf("%q is a preview where there are none", host)
		}
		for _, kind := range []string{ofLink, ofCookie} {
			if g, err := links.read(kind, token, place{sandbox: right.Sandbox, port: right.Port}, now); err == nil && (token != made || kind != ofLink) {
				t.Errorf("%q is taken as %s: %+v", token, kind, g)
			}
		}
	})
}
