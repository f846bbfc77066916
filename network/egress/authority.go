// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Authority makes the certificates under which a gate ends the TLS of bound hosts. Its
// root is constrained to these hosts, so that a sandbox that trusts it trusts it with
// nothing else. It is safe for concurrent use.
type Authority struct {
	key    *ecdsa.PrivateKey
	leaf   *ecdsa.PrivateKey // of all leaves; it never leaves this process
	root   *x509.Certificate
	hosts  []string
	config *tls.Config
	now    func() time.Time

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// Bounds of an authority.
const (
	// AuthoritySeed is how many bytes AuthorityKey needs: 16 more than a key has, so
	// that all keys are as likely.
	AuthoritySeed = 48
	rootYears     = 4
	leafFor       = 60 * 24 * time.Hour
	leafLeast     = 30 * 24 * time.Hour // that a cached leaf still holds
	leafSkew      = 48 * time.Hour      // that a sandbox's clock may be behind
	maxLeaves     = 256
	maxCommonName = 64 // X.509's bound of the field
)

// AuthorityKey makes the key of an authority from secret bytes, always the same one.
func AuthorityKey(seed []byte) (*ecdsa.PrivateKey, error) {
	if len(seed) < AuthoritySeed {
		return nil, fault.New(fault.Internal, "an authority's key needs %d secret bytes, and there are %d", AuthoritySeed, len(seed))
	}
	most := new(big.Int).Sub(elliptic.P256().Params().N, big.NewInt(1))
	d := new(big.Int).SetBytes(seed)
	d.Mod(d, most).Add(d, big.NewInt(1))
	return ecdsa.ParseRawPrivateKey(elliptic.P256(), d.FillBytes(make([]byte, 32)))
}

// NewAuthority makes the authority for hosts: names, or "*.name" for all below one.
// The same key, hosts and year give the same root, byte for byte.
func NewAuthority(key *ecdsa.PrivateKey, hosts []string, now func() time.Time) (*Authority, error) {
	if now == nil {
		now = time.Now
	}
	hosts = slices.Clone(hosts)
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	if len(hosts) == 0 {
		return nil, fault.New(fault.Internal, "an authority for no host")
	}
	below := make([]string, len(hosts))
	for i, h := range hosts {
		below[i] = strings.TrimPrefix(h, "*.")
	}
	slices.Sort(below)
	below = slices.Compact(below)
	year := now().UTC().Year()
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", year, strings.Join(below, " ")))
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(sum[:16]),
		Subject:      pkix.Name{Organization: []string{"sandpit"}, CommonName: "sandpit bound secrets"},
		// From a year before, for clocks that stand still.
		NotBefore:             time.Date(year-1, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(year+rootYears, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},

		// What is not named of a kind is unconstrained, so addresses are named as excluded.
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         below,
		ExcludedIPRanges: []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
			{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), steady{key})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the authority for bound secrets cannot be made")
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the authority for bound secrets cannot be made")
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the authority for bound secrets has no key")
	}
	a := &Authority{key: key, leaf: leaf, root: root, hosts: hosts, now: now, leaves: make(map[string]*tls.Certificate)}
	a.config = &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return a.certificate(h.ServerName)
		},
	}
	return a, nil
}

// steady signs the same with the same signature (RFC 6979).
type steady struct{ *ecdsa.PrivateKey }

func (s steady) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return s.PrivateKey.Sign(nil, digest, opts)
}

// PEM is the root as a sandbox is given it.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.root.Raw})
}

// certificate returns one for exactly this name, which must be of one of the hosts.
func (a *Authority) certificate(name string) (*tls.Certificate, error) {
	name, ok := sandbox.NormalName(name)
	if !ok || !slices.ContainsFunc(a.hosts, func(h string) bool { return covers(h, name) }) {
		return nil, fault.New(fault.Denied, "no secret is bound to %q", sandbox.Clip(name, 80))
	}
	at := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leaves[name]; c != nil && c.Leaf.NotAfter.Sub(at) > leafLeast {
		return c, nil
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		NotBefore:    at.Add(-leafSkew),
		NotAfter:     at.Add(leafFor),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{name},
	}
	if len(name) <= maxCommonName {
		template.Subject.CommonName = name
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, a.leaf.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	if len(a.leaves) >= maxLeaves { // any: each is made again in no time
		for other := range a.leaves {
			delete(a.leaves, other)
			break
		}
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.leaf, Leaf: leaf}
	a.leaves[name] = c
	return c, nil
}

// covers reports whether a host, or all below one, means a name. Both are normal.
func covers(host, name string) bool {
	below, wild := strings.CutPrefix(host, "*.")
	return host == name || wild && strings.HasSuffix(name, "."+below)
}
