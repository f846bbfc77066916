// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package localca makes an authority for one domain and certificates of it, for servers whose domain no public
// authority can check.
package localca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/internal/atomicfile"
)

// The files of a directory that Make fills, in PEM.
const (
	AuthorityFile    = "ca.pem"     // what clients trust
	AuthorityKeyFile = "ca-key.pem" // mode 0600; needed to renew the certificate alone
	CertFile         = "cert.pem"
	KeyFile          = "key.pem" // mode 0600
)

const (
	authorityFor = 10 * 365 * 24 * time.Hour
	// certFor is the most that Safari takes of a certificate, less than its 398 days.
	certFor = 397 * 24 * time.Hour
	skew    = 48 * time.Hour // that a client's clock may be behind
)

// Made is what [Make] made.
type Made struct {
	Names     []string  // of the certificate
	Expires   time.Time // of the certificate
	Authority time.Time // when the authority expires
	Kept      bool      // the authority was there already
}

// Make makes a certificate for domain and, unless that is one label, all names one label below it, by an authority
// that it makes or finds in dir. Clients that trust the authority trust it with names at and below domain, and nothing else. The
// error is fault.Exists where the authority in dir is one of another domain.
func Make(dir, domain string, now time.Time) (Made, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Made{}, fault.Wrap(fault.Invalid, err, "the directory %s cannot be made", dir)
	}
	root, key, err := read(dir, domain, now)
	kept := root != nil
	if err == nil && !kept {
		root, key, err = makeAuthority(dir, domain, now)
	}
	if err != nil {
		return Made{}, err
	}
	names := []string{domain}
	if strings.Contains(domain, ".") { // else clients take no wildcard, and some not the certificate that has one
		names = append(names, "*."+domain)
	}
	leaf, err := makeKey()
	if err != nil {
		return Made{}, err
	}
	serial, err := newSerial()
	if err != nil {
		return Made{}, err
	}
	until := now.Add(certFor)
	if until.After(root.NotAfter) {
		until = root.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{Organization: []string{"sandpit"}},
		NotBefore: now.Add(-skew), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, DNSNames: names,
	}, root, leaf.Public(), key)
	if err != nil {
		return Made{}, fault.Wrap(fault.Internal, err, "the certificate cannot be made")
	}
	// A server that looks in between has a pair that does not fit, and keeps the one before.
	err = errors.Join(write(dir, KeyFile, leaf, nil), write(dir, CertFile, nil, der))
	return Made{Names: names, Expires: until, Authority: root.NotAfter, Kept: kept}, err
}

// read returns the authority in dir; nil: there is none.
func read(dir, domain string, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	path := filepath.Join(dir, AuthorityFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	bad := func(err error) error {
		return fault.Wrap(fault.Exists, err, "%s is there, and cannot be gone on with", path).
			WithRemedy("choose another directory with --dir, or remove its files: clients have to trust the new authority then")
	}
	if err != nil {
		return nil, nil, bad(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, nil, bad(errors.New("it is not PEM"))
	}
	root, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, bad(err)
	}
	if !slices.Equal(root.PermittedDNSDomains, []string{domain}) {
		return nil, nil, fault.New(fault.Exists, "%s is an authority for %q, and not for %q", path, root.PermittedDNSDomains, domain).
			WithRemedy("choose another directory with --dir")
	}
	if !now.Before(root.NotAfter) {
		return nil, nil, bad(errors.New("it has expired"))
	}
	text, err = os.ReadFile(filepath.Join(dir, AuthorityKeyFile))
	if err != nil {
		return nil, nil, bad(err)
	}
	if block, _ = pem.Decode(text); block == nil {
		return nil, nil, bad(errors.New("its key is not PEM"))
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, nil, bad(err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(root.PublicKey) {
		return nil, nil, bad(errors.New("its key is that of another one"))
	}
	return root, key, nil
}

func makeAuthority(dir, domain string, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := makeKey()
	if err != nil {
		return nil, nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{Organization: []string{"sandpit"}, CommonName: commonName(domain)},
		NotBefore: now.Add(-skew), NotAfter: now.Add(authorityFor),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		// What is not named of a kind is unconstrained, so addresses are named as excluded.
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: []string{domain},
		ExcludedIPRanges: []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
			{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "the authority cannot be made")
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "the authority cannot be made")
	}
	// The key first: an authority without one could not be gone on with.
	if err := write(dir, AuthorityKeyFile, key, nil); err != nil {
		return nil, nil, err
	}
	return root, key, write(dir, AuthorityFile, nil, der)
}

// commonName names the authority of a domain in lists of authorities; X.509 has room for 64 characters.
func commonName(domain string) string {
	name := "sandpit authority for " + domain
	if len(name) > 64 {
		return "sandpit authority for one domain"
	}
	return name
}

func makeKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "no key could be made")
	}
	return key, nil
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "no number for a certificate could be made")
	}
	return serial.Add(serial, big.NewInt(1)), nil
}

// write writes a key, or a certificate.
func write(dir, name string, key *ecdsa.PrivateKey, cert []byte) error {
	block, mode := &pem.Block{Type: "CERTIFICATE", Bytes: cert}, fs.FileMode(0o644)
	if key != nil {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "the key cannot be written")
		}
		block, mode = &pem.Block{Type: "PRIVATE KEY", Bytes: der}, 0o600
	}
	path := filepath.Join(dir, name)
	if err := atomicfile.Write(path, pem.EncodeToMemory(block), mode); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the file %s cannot be written", path)
	}
	return nil
}
