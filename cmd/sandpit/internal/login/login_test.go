// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package login

import (
	"strings"
	"testing"

	"sandpit.dev/internal/servers"
)

func TestWhatIsSignedInTo(t *testing.T) {
	l := servers.List{Current: "box"}
	l.Put(servers.Server{Name: "box", URL: "https://box.example", Token: "box-token"})
	l.Put(servers.Server{Name: "lab", URL: "http://lab.example:8080", Token: "lab-token"})
	l.Put(servers.Server{Name: "old", URL: "https://old.example"})
	for _, c := range []struct{ what, name, url, kept, err string }{
		{what: "https://New.example/", url: "https://new.example", kept: "new.example"},
		{what: "https://new.example/mcp", url: "https://new.example", kept: "new.example"},
		{what: "https://new.example/base/v1", url: "https://new.example/base", kept: "new.example"},
		{what: "new.example", url: "https://new.example", kept: "new.example"},
		{what: "127.0.0.1:8080", url: "http://127.0.0.1:8080", kept: "127.0.0.1:8080"},
		{what: "[::1]:8080", url: "http://[::1]:8080", kept: "::1:8080"},
		{what: "localhost", url: "http://localhost", kept: "localhost"},
		{what: "box", url: "https://box.example", kept: "box"},
		{what: "https://box.example", url: "https://box.example", kept: "box"},
		{what: "https://box.example", name: "other", url: "https://box.example", kept: "other"},
		{what: "https://new.example", name: "box", err: "the name box is that of"},
		{what: "local", err: "this machine's own"},
		{what: "ftp://x", err: "not an http or https URL"},
		{what: "https://user:secret@x", err: "has a user in it"},
		{what: "https://x?token=secret", err: "query"},
	} {
		s, err := newcomer(l, c.what, c.name)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: got %+v, %v; want %q", c.what, s, err, c.err)
			}
			continue
		}
		if want := (servers.Server{Name: c.kept, URL: c.url}); err != nil || s != want {
			t.Errorf("%s: got %+v, %v; want %+v", c.what, s, err, want)
		}
	}
}
