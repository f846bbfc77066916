// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package indextest makes packages for Python and Node, an index for Node, and an authority for the hosts of
// indexes, for tests of what installs packages.
package indextest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Authority returns the certificate, in PEM, of a new authority, and what a server needs to answer as these
// hosts, which it vouches for.
func Authority(tb testing.TB, hosts ...string) (authority []byte, server *tls.Config) {
	tb.Helper()
	sign := func(c, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) []byte {
		b, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), parentKey)
		if err != nil {
			tb.Fatal(err)
		}
		return b
	}
	newKey := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			tb.Fatal(err)
		}
		return k
	}
	from, to := time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	ca, caKey := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority of a test"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, newKey()
	leaf, leafKey := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "the hosts of a test"}, NotBefore: from, NotAfter: to,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: hosts,
	}, newKey()
	own := sign(ca, ca, caKey, caKey)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own}), &tls.Config{Certificates: []tls.Certificate{{
		Certificate: [][]byte{sign(leaf, ca, leafKey, caKey), own}, PrivateKey: leafKey,
	}}}
}

// Wheel returns version 1.0 of a package for Python, of one module, and the name of its file. The name may have
// hyphens, which are underscores in that of the module.
func Wheel(tb testing.TB, name, module string, requires ...string) (file string, wheel []byte) {
	tb.Helper()
	stem := strings.ReplaceAll(name, "-", "_")
	info := stem + "-1.0.dist-info/"
	about := "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n"
	for _, other := range requires {
		about += "Requires-Dist: " + other + "\n"
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range [][2]string{
		{stem + ".py", module},
		{info + "METADATA", about},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", fmt.Sprintf("%s.py,,\n%[2]sMETADATA,,\n%[2]sWHEEL,,\n%[2]sRECORD,,\n", stem, info)},
	} {
		e, err := z.Create(f[0])
		if err == nil {
			_, err = e.Write([]byte(f[1]))
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return stem + "-1.0-py3-none-any.whl", b.Bytes()
}

// NPM returns an index with version 1.0.0 of one package for Node, whose program is main.
func NPM(tb testing.TB, name, main string) http.Handler {
	tb.Helper()
	ball := Tarball(tb, [][2]string{
		{"package/package.json", fmt.Sprintf(`{"name":%q,"version":"1.0.0","main":"index.js"}`, name)},
		{"package/index.js", main},
	})
	sum := sha512.Sum512(ball)
	file := "/" + name + "/-/" + name + "-1.0.0.tgz"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"name": name, "dist-tags": map[string]string{"latest": "1.0.0"},
			"versions": map[string]any{"1.0.0": map[string]any{
				"name": name, "version": "1.0.0", "main": "index.js",
				"dist": map[string]string{
					"tarball":   scheme + "://" + r.Host + file,
					"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
				},
			}},
		})
	})
	mux.HandleFunc("GET "+file, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(ball) })
	return mux
}

// Tarball returns a compressed archive of files, each with its name and content.
func Tarball(tb testing.TB, files [][2]string) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	a := tar.NewWriter(z)
	for _, f := range files {
		err := a.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1])), ModTime: time.Unix(1, 0), Typeflag: tar.TypeReg})
		if err == nil {
			_, err = a.Write([]byte(f[1]))
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := errors.Join(a.Close(), z.Close()); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}
