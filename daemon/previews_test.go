// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sandpit.dev/engine/ports"
	"sandpit.dev/fault"
)

func TestTheKeyOfLinksIsMadeOnceAndKept(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Data = t.TempDir()
	path := filepath.Join(cfg.Data, PreviewKeyFile)
	token := func() string {
		t.Helper()
		l, err := openLinks(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return linkMaker{l.ports}.Token(ports.Preview{Link: "l", Sandbox: "s", Project: "p", Port: 1, ExpiresAt: time.Unix(1, 0)})
	}
	first := token()
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 || st.Size() != 32 {
		t.Errorf("the file: %v, %v", st, err)
	}
	if again := token(); again != first {
		t.Error("a second start signs otherwise")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if after := token(); after == first {
		t.Error("a new key signs as the old one")
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openLinks(cfg); !fault.Is(err, fault.Invalid) || fault.As(err).Remedy == "" {
		t.Errorf("a broken key: %v", err)
	}
}

func TestTheDomainOfPreviews(t *testing.T) {
	for given, want := range map[string]string{"": "localhost", "none": "", "p.example.org": "p.example.org"} {
		c := DefaultConfig()
		if err := c.ReadEnv(func(k string) string { return map[string]string{"SANDPIT_PREVIEW_DOMAIN": given}[k] }); err != nil {
			t.Fatal(err)
		}
		if err := c.Check(); err != nil || c.Preview.Domain != want {
			t.Errorf("%q: got %q, %v", given, c.Preview.Domain, err)
		}
		inFile := DefaultConfig()
		if given != "" {
			inFile.Preview.Domain = given
		}
		if err := inFile.Check(); err != nil || inFile.Preview.Domain != want {
			t.Errorf("%q in the file: got %q, %v", given, inFile.Preview.Domain, err)
		}
		c.Data = t.TempDir()
		l, err := openLinks(c)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "http://127.0.0.1/", nil)
		if address, path := l.ports.Addresses(r, "s", 80); (address == path) != (want == "") {
			t.Errorf("%q: got %s and %s", given, address, path)
		}
	}
	c := DefaultConfig()
	c.Preview.Domain = "p.example.org:80"
	if err := c.Check(); !fault.Is(err, fault.Invalid) {
		t.Errorf("a domain with a port: %v", err)
	}
}
