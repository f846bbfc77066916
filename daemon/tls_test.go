// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/internal/localca"
)

func TestTLSOfAConfiguration(t *testing.T) {
	for _, c := range []struct {
		name, listen string
		tls          TLSConfig
		want         string // of the address with TLS
		bad          string // the field that is not right
	}{
		{name: "none", listen: "127.0.0.1:8080"},
		{name: "its own port", listen: "127.0.0.1:8080", tls: TLSConfig{Cert: "c", Key: "k"}, want: "127.0.0.1:8443"},
		{name: "of IPv6", listen: "[::1]:8080", tls: TLSConfig{Cert: "c", Key: "k"}, want: "[::1]:8443"},
		{name: "its own address", listen: "127.0.0.1:8080", tls: TLSConfig{Cert: "c", Key: "k", Listen: ":443"}, want: ":443"},
		{name: "any two ports", listen: "127.0.0.1:0", tls: TLSConfig{Cert: "c", Key: "k", Listen: "127.0.0.1:0"}, want: "127.0.0.1:0"},
		{name: "no certificate", listen: "127.0.0.1:8080", tls: TLSConfig{Key: "k"}, bad: "tls.cert"},
		{name: "an address alone", listen: "127.0.0.1:8080", tls: TLSConfig{Listen: ":443"}, bad: "tls.cert"},
		{name: "no key", listen: "127.0.0.1:8080", tls: TLSConfig{Cert: "c"}, bad: "tls.key"},
		{name: "no port", listen: "127.0.0.1:8080", tls: TLSConfig{Cert: "c", Key: "k", Listen: "box"}, bad: "tls.listen"},
		{name: "one port for both", listen: ":8443", tls: TLSConfig{Cert: "c", Key: "k", Listen: ":8443"}, bad: "tls.listen"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.tls.check(c.listen)
			if c.bad != "" {
				if fault.Of(err) != fault.Invalid || !slices.ContainsFunc(fault.As(err).Fields, func(f fault.Field) bool { return f.Name == c.bad }) {
					t.Errorf("got %v, want %s to be refused", err, c.bad)
				}
				return
			}
			if err != nil || c.tls.Listen != c.want {
				t.Errorf("it listens on %q (%v), want %q", c.tls.Listen, err, c.want)
			}
		})
	}
}

func TestADomainIsTheServersNameAndThatOfPreviews(t *testing.T) {
	c := DefaultConfig()
	c.Domain = "box.example"
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	if c.Preview.Domain != "box.example" || !slices.Equal(c.Hosts, []string{"box.example", "api.box.example"}) {
		t.Errorf("previews are below %s, and the names are %q", c.Preview.Domain, c.Hosts)
	}
	c = DefaultConfig()
	c.Domain, c.Preview.Domain, c.Hosts = "box.example", "pages.example", []string{"box.example"}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	if c.Preview.Domain != "pages.example" || !slices.Equal(c.Hosts, []string{"box.example", "api.box.example"}) {
		t.Errorf("previews are below %s, and the names are %q", c.Preview.Domain, c.Hosts)
	}
	for _, bad := range []string{"Box.example", "box.example:80", "*.example", ".example", "127.0.0.1", "a b"} {
		c := DefaultConfig()
		if c.Domain = bad; fault.Of(c.Check()) != fault.Invalid {
			t.Errorf("the domain %q is taken", bad)
		}
	}
}

func TestDoctorLooksAtTheCertificate(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	if _, err := localca.Make(dir, "box.example", now); err != nil {
		t.Fatal(err)
	}
	c := TLSConfig{Cert: filepath.Join(dir, localca.CertFile), Key: filepath.Join(dir, localca.KeyFile)}
	for _, w := range []struct {
		name, domain string
		at           time.Time
		status       CheckStatus
		says         string
	}{
		{"right", "box.example", now, Passed, "for box.example, *.box.example"},
		{"without a domain", "", now, Passed, "until"},
		{"of another domain", "other.example", now, Warned, "is not for other.example, api.other.example"},
		{"soon over", "box.example", now.Add(390 * 24 * time.Hour), Warned, "expires on"},
		{"over", "box.example", now.Add(400 * 24 * time.Hour), Failed, "has expired"},
		{"not yet", "box.example", now.Add(-72 * time.Hour), Failed, "does not hold before"},
	} {
		t.Run(w.name, func(t *testing.T) {
			if got := c.checkTLS(w.domain, w.at); got.Status != w.status || !strings.Contains(got.Detail, w.says) {
				t.Errorf("got %+v, want %s and %q", got, w.status, w.says)
			}
		})
	}
	if err := os.Chmod(c.Key, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := c.checkTLS("box.example", now); got.Status != Warned || !strings.Contains(got.Remedy, "chmod 600") {
		t.Errorf("a key that all may read: %+v", got)
	}
	c.Key = c.Cert
	if got := c.checkTLS("box.example", now); got.Status != Failed {
		t.Errorf("without a key: %+v", got)
	}
}

// names is a resolver that knows some names.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	a, ok := n[host]
	if !ok {
		return nil, errors.New("no such host")
	}
	return []netip.Addr{netip.MustParseAddr(a)}, nil
}

func TestDoctorLooksWhereNamesLeadTo(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("192.0.2.7")}
	for _, w := range []struct {
		name   string
		dns    names
		status CheckStatus
		says   string
	}{
		{"here", names{"b.example": "192.0.2.7", "api.b.example": "127.0.0.1", "8080-example.b.example": "::ffff:192.0.2.7"}, Passed, "lead to this machine"},
		{"no previews", names{"b.example": "192.0.2.7", "api.b.example": "192.0.2.7"}, Warned, "no address is known of 8080-example.b.example"},
		{"elsewhere", names{"b.example": "192.0.2.8", "api.b.example": "192.0.2.7", "8080-example.b.example": "192.0.2.7"}, Warned, "b.example (192.0.2.8)"},
	} {
		t.Run(w.name, func(t *testing.T) {
			if got := checkNames(t.Context(), "b.example", w.dns, own); got.Status != w.status || !strings.Contains(got.Detail, w.says) {
				t.Errorf("got %+v, want %s and %q", got, w.status, w.says)
			}
		})
	}
}
