// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package localca_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/internal/localca"
)

func certificate(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%s is not PEM", path)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheCertificateHoldsForTheDomainAndNamesBelowIt(t *testing.T) {
	dir, now := filepath.Join(t.TempDir(), "tls"), time.Now()
	made, err := localca.Make(dir, "box.example", now)
	if err != nil {
		t.Fatal(err)
	}
	if made.Kept {
		t.Error("an authority was found in an empty directory")
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, filepath.Join(dir, localca.AuthorityFile)))
	leaf := certificate(t, filepath.Join(dir, localca.CertFile))
	for name, right := range map[string]bool{
		"box.example": true, "api.box.example": true, "8080-abc.box.example": true,
		"a.b.box.example": false, "example": false, "box.example.org": false, "127.0.0.1": false,
	} {
		_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now.Add(396 * 24 * time.Hour)})
		if (err == nil) != right {
			t.Errorf("for %s: %v", name, err)
		}
	}
	for name, want := range map[string]os.FileMode{
		localca.AuthorityFile: 0o644, localca.AuthorityKeyFile: 0o600, localca.CertFile: 0o644, localca.KeyFile: 0o600,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
}

// Clients take no wildcard of less than two labels, and webpki, which is rustls', no certificate that has one.
func TestADomainOfOneLabelHasNoWildcard(t *testing.T) {
	dir := t.TempDir()
	if _, err := localca.Make(dir, "localhost", time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := certificate(t, filepath.Join(dir, localca.CertFile)).DNSNames; !slices.Equal(got, []string{"localhost"}) {
		t.Errorf("it is for %q", got)
	}
}

func TestMadeAgainTheAuthorityStays(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	if _, err := localca.Make(dir, "box.example", now); err != nil {
		t.Fatal(err)
	}
	root, leaf := certificate(t, filepath.Join(dir, localca.AuthorityFile)), certificate(t, filepath.Join(dir, localca.CertFile))
	made, err := localca.Make(dir, "box.example", now.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if !made.Kept || !certificate(t, filepath.Join(dir, localca.AuthorityFile)).Equal(root) {
		t.Error("it is another authority")
	}
	next := certificate(t, filepath.Join(dir, localca.CertFile))
	if next.Equal(leaf) || !next.NotAfter.After(leaf.NotAfter) {
		t.Errorf("the certificate holds until %v, and did until %v", next.NotAfter, leaf.NotAfter)
	}
	if err := next.CheckSignatureFrom(root); err != nil {
		t.Error(err)
	}
	if made, err := localca.Make(dir, "box.example", now.Add(9*365*24*time.Hour+300*24*time.Hour)); err != nil || made.Expires.After(made.Authority) {
		t.Errorf("near the authority's end: until %v of %v, %v", made.Expires, made.Authority, err)
	}
}

func TestAnAuthorityThatIsNotRightIsLeftAsItIs(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string) (domain string, now time.Time){
		"of another domain": func(*testing.T, string) (string, time.Time) { return "other.example", time.Now() },
		"of a domain below": func(*testing.T, string) (string, time.Time) { return "a.box.example", time.Now() },
		"that has expired": func(*testing.T, string) (string, time.Time) {
			return "box.example", time.Now().Add(11 * 365 * 24 * time.Hour)
		},
		"without its key": func(t *testing.T, dir string) (string, time.Time) {
			remove(t, dir, localca.AuthorityKeyFile)
			return "box.example", time.Now()
		},
		"with another's key": func(t *testing.T, dir string) (string, time.Time) {
			copyOver(t, dir, localca.KeyFile, localca.AuthorityKeyFile)
			return "box.example", time.Now()
		},
		"that is no PEM": func(t *testing.T, dir string) (string, time.Time) {
			put(t, dir, localca.AuthorityFile, "x")
			return "box.example", time.Now()
		},
		"whose key is none": func(t *testing.T, dir string) (string, time.Time) {
			put(t, dir, localca.AuthorityKeyFile, "x")
			return "box.example", time.Now()
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := localca.Make(dir, "box.example", time.Now()); err != nil {
				t.Fatal(err)
			}
			domain, now := change(t, dir)
			before := all(t, dir)
			if _, err := localca.Make(dir, domain, now); fault.Of(err) != fault.Exists {
				t.Errorf("got %v, want fault.Exists", err)
			}
			for name, text := range all(t, dir) {
				if before[name] != text {
					t.Errorf("%s was changed", name)
				}
			}
		})
	}
}

func all(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		texts[e.Name()] = string(b)
	}
	return texts
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func copyOver(t *testing.T, dir, from, to string) {
	t.Helper()
	put(t, dir, to, all(t, dir)[from])
}
