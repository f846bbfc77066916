// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/network/egress"
	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

// secretValue is bound to the world's host, and never inside.
const secretValue = "s3cr3t/value+of.the=suite"

// networkSecret has a request of a sandbox take a bound secret on its way, and a large body go both ways over the TLS that ends at
// the gate.
func networkSecret(t *testing.T, s *suite) {
	b := s.create(t, s.spec())
	cert, pool := certificateOf(t, worldName)
	got := make(chan string, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization")
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Header.Get("Authorization")+"\n")
		_, _ = w.Write(body)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	key, err := egress.AuthorityKey([]byte(strings.Repeat("seed", 12)))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := egress.NewAuthority(key, []string{worldName}, nil)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := sandbox.Secret{Name: "KEY", Hosts: []string{worldName}}.Normal()
	if err != nil {
		t.Fatal(err)
	}
	p, err := sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowDomains: []string{worldName}}.Normal()
	if err != nil {
		t.Fatal(err)
	}
	gate := egress.NewGate(egress.Options{
		Policy: policy.New(p, policy.Operator{}), Journal: egress.NewJournal(nil), Resolver: secretWorld{}, Roots: pool,
		Keys: egress.NewKeys(authority, []egress.Bound{{Secret: secret, Value: secretValue}}, nil),
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
	traffic := b.steer()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		gate.Serve(ctx, traffic)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	const program = `import os, ssl, urllib.request
body = os.urandom(3 << 20)
r = urllib.request.Request('https://` + worldName + `/', data=body, headers={'Authorization': 'Bearer sandpit-secret-KEY'})
a = urllib.request.urlopen(r, context=ssl.create_default_context(cadata=os.environ['AUTHORITY']), timeout=20)
print(a.readline().decode().strip(), a.read() == body)`
	o := b.exec(agent.Command{Argv: []string{"python3", "-c", program}, Env: map[string]string{"AUTHORITY": string(authority.PEM())}})
	if o.Stdout != "Bearer "+strings.Repeat("*", len(secretValue))+" True\n" {
		t.Fatalf("the program has %q, %q", o.Stdout, o.Stderr)
	}
	if header := <-got; header != "Bearer "+secretValue {
		t.Errorf("the host has %q", header)
	}
}

// secretWorld has one host.
type secretWorld struct{ *net.Resolver }

func (secretWorld) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	if network != "ip4" || strings.TrimSuffix(host, ".") != worldName {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr(worldAddress)}, nil
}

// certificateOf makes a certificate for a name, and who vouches for it.
func certificateOf(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the world"}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}
