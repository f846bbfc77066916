// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
)

// certificate makes one, which another one's key may have signed.
func certificate(t *testing.T, name string, authority bool, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
		IsCA: authority, BasicConstraintsValid: true,
	}
	parent := template
	if !authority {
		parent = &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "issuer of " + name}}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestAuthoritiesAreReadAndChecked(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	file := func(text []byte) string {
		f, err := os.CreateTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(text); err != nil {
			t.Fatal(err)
		}
		return f.Name()
	}
	one, two := certificate(t, "one", true, now.Add(time.Hour)), certificate(t, "two", true, now.Add(time.Hour))
	comment := []byte("# the company's\n")
	both := file(bytes.Join([][]byte{comment, one, two}, nil))
	text, roots, err := authorities([]string{both, file(one)})
	if err != nil || roots == nil || !bytes.Equal(text, append(bytes.Clone(one), two...)) {
		t.Errorf("%q, %v", text, err)
	}
	if text, roots, err := authorities(nil); text != nil || roots != nil || err != nil {
		t.Errorf("without files: %q, %v, %v", text, roots, err)
	}
	if c := checkAuthorities([]string{both}, now); c.Status != Passed || !strings.Contains(c.Detail, "2 in network.ca_files") {
		t.Errorf("%+v", c)
	}
	old := file(certificate(t, "old", true, now.Add(-time.Hour)))
	if c := checkAuthorities([]string{old, both}, now); c.Status != Warned || !strings.Contains(c.Detail, "CN=old") {
		t.Errorf("one that has expired: %+v", c)
	}
	for what, c := range map[string]struct{ file, says string }{
		"nothing there":  {filepath.Join(dir, "missing"), "cannot be read"},
		"a directory":    {dir, "cannot be read"},
		"no certificate": {file(comment), "no certificate in PEM"},
		"DER":            {file(bytes.Repeat([]byte{0x30, 0x82}, 100)), "no certificate in PEM"},
		"a private key":  {file(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("x")})), "private key"},
		"a request":      {file(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})), "not a certificate"},
		"rubbish in PEM": {file(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), "certificate 1 cannot be read"},
		"a server's":     {file(certificate(t, "www.test", false, now.Add(time.Hour))), "and not an authority's"},
		"one cut short":  {file(append(bytes.Clone(one), two[:len(two)-40]...)), "what follows certificate 1"},
		"too much":       {file(bytes.Repeat(one, maxAuthorityFile/len(one)+1)), "more than"},
	} {
		if _, _, err := authorities([]string{c.file}); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.As(err).Message, c.says) {
			t.Errorf("%s: %v", what, err)
		}
		if check := checkAuthorities([]string{c.file}, now); check.Status != Failed || !strings.Contains(check.Detail, c.says) {
			t.Errorf("%s: the doctor says %+v", what, check)
		}
	}
	var many []byte
	for range maxAuthorities + 1 {
		many = append(many, certificate(t, "many", true, now.Add(time.Hour))...)
	}
	if _, _, err := authorities([]string{file(many)}); !fault.Is(err, fault.Invalid) {
		t.Errorf("too many: %v", err)
	}
}
