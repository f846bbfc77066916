// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/git"
)

// FuzzAddress holds that no address is an option or a program for git, and that none that is kept has a password in it.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"https://user:secret@host.example/a.git", "ssh://git@host/a", "git@host:a/b", "ext::sh -c id", "-uid", "ssh://-oProxyCommand=x/a", "file:///etc", "HTTPS://H/a", "a@b@c:d", "./a::b",
		"http://[::1]:80/a", "https://host/%2e%2e", "/mnt/a", "https://:@/x", "git://h\u202e/a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, user, password, err := git.ReadAddress(text)
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		before, _, remote := strings.Cut(a.Text, "::")
		if strings.HasPrefix(a.Text, "-") || strings.HasPrefix(a.Host, "-") || strings.ContainsAny(a.Text+a.Host, "\x00\n\r") || remote && !strings.ContainsAny(before, "/") {
			t.Errorf("%q is %+v", text, a)
		}
		again, user2, password2, err := git.ReadAddress(a.Text)
		if err != nil || again.Host != a.Host || user != "" && user2 != "" || password2 != "" {
			t.Errorf("%q is %+v, which reads as %+v with %q, %q (%q, %v)", text, a, again, user2, password2, password, err)
		}
	})
}
