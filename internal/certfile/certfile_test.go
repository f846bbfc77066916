// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package certfile

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/internal/localca"
)

// files makes a certificate and its key for domain.
func files(t *testing.T, domain string) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	if _, err := localca.Make(dir, domain, time.Now()); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, localca.CertFile), filepath.Join(dir, localca.KeyFile)
}

func replace(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(to+".new", to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestARenewedCertificateIsServedOnceBothFilesFit(t *testing.T) {
	cert, key := files(t, "first.example")
	p, err := Open(cert, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	p.now = func() time.Time { return at }
	serves := func(want string) {
		t.Helper()
		at = at.Add(2 * lookEvery)
		got, err := p.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Leaf.DNSNames[0] != want {
			t.Errorf("it serves the certificate of %s, want that of %s", got.Leaf.DNSNames[0], want)
		}
	}
	serves("first.example")
	cert2, key2 := files(t, "second.example")
	replace(t, key2, key)
	serves("first.example") // the key is the new one's, the certificate is not
	replace(t, cert2, cert)
	serves("second.example")
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	serves("second.example")
	replace(t, cert2, cert)
	serves("second.example")
	// At once it is not looked at again: a flood of handshakes reads no files.
	cert3, key3 := files(t, "third.example")
	replace(t, cert3, cert)
	replace(t, key3, key)
	if got, err := p.GetCertificate(nil); err != nil || got.Leaf.DNSNames[0] != "second.example" {
		t.Errorf("within the same moment: %v, %v", got.Leaf.DNSNames, err)
	}
	serves("third.example")
	if got := p.Leaf().DNSNames[0]; got != "third.example" {
		t.Errorf("Leaf is that of %s", got)
	}
}

func TestFilesThatAreNotRightAreNamed(t *testing.T) {
	cert, key := files(t, "first.example")
	otherCert, otherKey := files(t, "second.example")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, cert, key, want string }{
		{"no certificate", "/nowhere/c.pem", key, "/nowhere/c.pem, cannot be read"},
		{"no key", cert, "/nowhere/k.pem", "/nowhere/k.pem, cannot be read"},
		{"another's key", cert, otherKey, "private key does not match public key"},
		{"another's certificate", otherCert, key, "private key does not match public key"},
		{"a text", text, key, "failed to find any PEM data"},
		{"the other way round", key, cert, "PEM inputs may have been switched"},
		{"a directory", filepath.Dir(cert), key, "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(c.cert, c.key, slog.New(slog.DiscardHandler))
			if fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want fault.Invalid with %q", err, c.want)
			}
		})
	}
}
