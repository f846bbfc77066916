// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package filelink_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sandpit.dev/api/filelink"
	"sandpit.dev/fault"
)

var now = time.Unix(1_795_000_000, 0).UTC()

func links(t testing.TB, key byte) *filelink.Links {
	t.Helper()
	l, err := filelink.New(bytes.Repeat([]byte{key}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var one = filelink.Grant{Project: "default", Sandbox: "abc", Path: "/workspace/a b.txt", Expires: now.Add(time.Hour)}

func TestAShortKeyIsRefused(t *testing.T) {
	if _, err := filelink.New(make([]byte, 31)); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v", err)
	}
}

func TestWhatWasSignedIsRead(t *testing.T) {
	l := links(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		g := filelink.Grant{
			Project: rapid.StringMatching("[a-z]{0,20}").Draw(t, "project"), Sandbox: rapid.StringMatching("[a-z0-9]{1,26}").Draw(t, "sandbox"),
			Path: "/" + rapid.String().Draw(t, "path"), Expires: now.Add(time.Second),
		}
		got, err := l.Read(l.Token(g), now)
		if err != nil || got != g {
			t.Fatalf("got %+v, %v, want %+v", got, err, g)
		}
	})
}

func TestNothingElseIsRead(t *testing.T) {
	l := links(t, 1)
	token := l.Token(one)
	bad := map[string]string{
		"Empty": "", "NoPrefix": strings.TrimPrefix(token, "spf_"), "NoMAC": token[:strings.IndexByte(token, '.')],
		"AnEmptyMAC": token[:strings.IndexByte(token, '.')+1], "AnotherKey": links(t, 2).Token(one), "Longer": token + "A",
		"Huge": "spf_" + strings.Repeat("A", 1<<20) + ".AA", "NoBase64": "spf_%%." + strings.Split(token, ".")[1],
	}
	for i := range token {
		c := byte('A')
		if token[i] == c {
			c = 'B'
		}
		bad["Changed"+string(rune('0'+i/100))+token[i:i+1]] = token[:i] + string(c) + token[i+1:]
	}
	for name, s := range bad {
		if g, err := l.Read(s, now); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: got %+v, %v", name, g, err)
		}
	}
	if _, err := l.Read(token, one.Expires); !fault.Is(err, fault.Unauthenticated) || !strings.Contains(err.Error(), "expired at") {
		t.Errorf("when it has expired: %v", err)
	}
}

func TestAddress(t *testing.T) {
	l := links(t, 1)
	r := httptest.NewRequest(http.MethodPost, "http://sandpit.example:7700/mcp", nil)
	for proto, want := range map[string]string{"": "http://sandpit.example:7700/files/spf_", "https": "https://sandpit.example:7700/files/spf_"} {
		r.Header.Set("X-Forwarded-Proto", proto)
		got := l.Address(r, one)
		if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "/a%20b.txt") {
			t.Errorf("got %s", got)
		}
		u, err := url.Parse(got)
		if err != nil {
			t.Fatal(err)
		}
		token, name, err := filelink.Parse(u.EscapedPath())
		if err != nil || name != "a b.txt" {
			t.Errorf("name %q, %v", name, err)
		}
		if g, err := l.Read(token, now); err != nil || cmp.Diff(one, g) != "" {
			t.Errorf("got %+v, %v", g, err)
		}
	}
}

func TestParseRefusesWhatIsNoLink(t *testing.T) {
	for _, p := range []string{"", "/", "/files/", "/files/t", "/files/t/", "/files/t/a/b", "/files/t/a%2Fb", "/files/t/%zz", "/other/t/a"} {
		if _, _, err := filelink.Parse(p); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", p, err)
		}
	}
}

func TestAKeyIsOfOneSandboxAndOneSalt(t *testing.T) {
	l, other := links(t, 1), links(t, 2)
	keys := map[string]bool{
		l.SandboxKey("a", ""): true, l.SandboxKey("a", "x"): true, l.SandboxKey("ax", ""): true, l.SandboxKey("b", ""): true, other.SandboxKey("a", ""): true,
	}
	if len(keys) != 5 {
		t.Errorf("of five keys there are %d", len(keys))
	}
	if again := l.SandboxKey("a", "x"); !keys[again] || len(again) < 43 {
		t.Errorf("the key is %q", again)
	}
}
