// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAnAuthorityIsForItsHostsOnly(t *testing.T) {
	a := testAuthority(t, "api.example", "*.wild.example")
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(a.PEM()) {
		t.Fatal("the root is no certificate")
	}
	for _, name := range []string{"api.example", "x.wild.example", "y.x.wild.example", "API.example."} {
		c, err := a.certificate(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(c.Leaf.DNSNames) != 1 || c.Leaf.IsCA || time.Until(c.Leaf.NotAfter) > leafFor {
			t.Errorf("%s: %+v", name, c.Leaf)
		}
	}
	for _, name := range []string{"other.example", "sub.api.example", "wild.example", "xwild.example", "", "*.wild.example", "10.0.0.1", "api.example:443"} {
		if _, err := a.certificate(name); err == nil {
			t.Errorf("it vouches for %q", name)
		}
	}
}

// forged is a leaf that whoever had the authority's key could make.
func forged(t *testing.T, a *Authority, change func(*x509.Certificate)) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, a.leaf.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// verifies tells whether openssl accepts a leaf as a server's.
func verifies(t *testing.T, a *Authority, leaf *x509.Certificate, more ...string) (bool, string) {
	t.Helper()
	dir := t.TempDir()
	root, cert := filepath.Join(dir, "root.pem"), filepath.Join(dir, "leaf.pem")
	if err := os.WriteFile(root, a.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", root}, more...)
	out, err := exec.Command("openssl", append(args, cert)...).CombinedOutput()
	return err == nil, string(out)
}

func TestNobodyTakesTheAuthorityForMore(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	a := testAuthority(t, "api.example", "*.wild.example")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.PEM())
	for _, name := range []string{"api.example", "x.wild.example"} {
		c, err := a.certificate(name)
		if err != nil {
			t.Fatal(err)
		}
		if ok, out := verifies(t, a, c.Leaf, "-verify_hostname", name); !ok {
			t.Errorf("%s: %s", name, out)
		}
	}
	for what, change := range map[string]func(*x509.Certificate){
		"another name":           func(c *x509.Certificate) { c.DNSNames = []string{"other.example"} },
		"a name that ends alike": func(c *x509.Certificate) { c.DNSNames = []string{"notapi.example"} },
		"one of two":             func(c *x509.Certificate) { c.DNSNames = []string{"api.example", "other.example"} },
		"an address":             func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(93, 184, 216, 34)} },
		"an address of IPv6":     func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.ParseIP("2606:2800::1")} },
	} {
		leaf := forged(t, a, change)
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool}); err == nil {
			t.Errorf("Go takes a leaf for %s", what)
		}
		if ok, out := verifies(t, a, leaf); ok || !strings.Contains(out, "permitted subtree violation") && !strings.Contains(out, "excluded subtree violation") {
			t.Errorf("openssl takes a leaf for %s: %s", what, out)
		}
	}
	bare := forged(t, a, func(c *x509.Certificate) { c.Subject.CommonName = "other.example" }) // by the old custom
	if ok, out := verifies(t, a, bare, "-verify_hostname", "other.example"); ok {
		t.Errorf("openssl takes a common name: %s", out)
	}
	for what, change := range map[string]func(*x509.Certificate){
		"signs code":       func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} },
		"is for clients":   func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} },
		"protects letters": func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection} },
	} {
		leaf := forged(t, a, func(c *x509.Certificate) { c.DNSNames = []string{"api.example"}; change(c) })
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: leaf.ExtKeyUsage}); err == nil {
			t.Errorf("Go takes one that %s", what)
		}
	}
	lower := forged(t, a, func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage, c.DNSNames = true, true, x509.KeyUsageCertSign, []string{"api.example"}
	})
	between := &Authority{key: a.leaf, leaf: a.leaf, root: lower}
	leaf := forged(t, between, func(c *x509.Certificate) { c.DNSNames = []string{"api.example"} })
	inter := x509.NewCertPool()
	inter.AddCert(lower)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, Intermediates: inter}); err == nil {
		t.Error("another authority below it is taken")
	}
}

func TestAnAuthorityIsTheSameEachTime(t *testing.T) {
	seed := bytes.Repeat([]byte{0xff}, AuthoritySeed)
	key, err := AuthorityKey(seed)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	root := func(key *ecdsa.PrivateKey, at time.Time, hosts ...string) string {
		t.Helper()
		a, err := NewAuthority(key, hosts, func() time.Time { return at })
		if err != nil {
			t.Fatal(err)
		}
		return string(a.PEM())
	}
	again, _ := AuthorityKey(seed)
	first := root(key, at, "b.example", "a.example", "*.a.example")
	if first != root(again, at.AddDate(0, 6, 0), "a.example", "*.a.example", "b.example", "a.example") {
		t.Error("the same hosts in the same year have another root")
	}
	other, _ := AuthorityKey(bytes.Repeat([]byte{1}, AuthoritySeed))
	for what, r := range map[string]string{"year": root(key, at.AddDate(1, 0, 0), "a.example", "b.example"), "hosts": root(key, at, "a.example"), "key": root(other, at, "a.example", "b.example")} {
		if r == first {
			t.Errorf("another %s has the same root", what)
		}
	}
	for _, seed := range [][]byte{make([]byte, AuthoritySeed), bytes.Repeat([]byte{0xff}, 2*AuthoritySeed)} {
		if _, err := AuthorityKey(seed); err != nil {
			t.Errorf("%x: %v", seed, err)
		}
	}
	if _, err := AuthorityKey(make([]byte, AuthoritySeed-1)); err == nil {
		t.Error("a short seed makes a key")
	}
	if _, err := NewAuthority(key, nil, nil); err == nil {
		t.Error("an authority for no host")
	}
}

func TestLeavesAreKeptAndBounded(t *testing.T) {
	key, err := AuthorityKey(make([]byte, AuthoritySeed))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	a, err := NewAuthority(key, []string{"*.wild.example"}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	get := func(name string) *x509.Certificate {
		t.Helper()
		c, err := a.certificate(name)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf
	}
	first := get("a.wild.example")
	if get("a.wild.example") != first {
		t.Error("the same name has another leaf")
	}
	if now = now.Add(leafFor - leafLeast); get("a.wild.example") == first {
		t.Error("a leaf is kept to its end")
	}
	for n := range 2 * maxLeaves {
		get(fmt.Sprintf("n%d.wild.example", n))
	}
	if len(a.leaves) > maxLeaves {
		t.Errorf("%d are kept", len(a.leaves))
	}
	long := strings.Repeat("long.", 20) + "wild.example"
	if c := get(long); c.Subject.CommonName != "" || c.DNSNames[0] != long {
		t.Errorf("a long name: %v", c.Subject)
	}
}
