// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"sandpit.dev/sandbox"
)

// Of the tests: a value, and what the program sends where it goes.
const (
	value   = "s3cr3t/value+of.the=test"
	standIn = "Bearer sandpit-secret-KEY"
	web     = "93.184.216.1:443"
)

// guarded is a sandbox's network with bound secrets, and one web server in the world.
type guarded struct {
	*place
	authority *Authority
	pool      *x509.CertPool
	server    *httptest.Server

	mu   sync.Mutex
	seen []*http.Request // by the server
	raw  atomic.Int64    // connections to the server
}

func secret(name string, hosts ...string) Bound {
	s, err := sandbox.Secret{Name: name, Hosts: hosts}.Normal()
	if err != nil {
		panic(err)
	}
	return Bound{s, value}
}

func testAuthority(t testing.TB, hosts ...string) *Authority {
	t.Helper()
	key, err := AuthorityKey([]byte(strings.Repeat("seed", 12)))
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewAuthority(key, hosts, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func keysOf(t testing.TB, bound ...Bound) *Keys {
	t.Helper()
	var hosts []string
	for _, b := range bound {
		hosts = append(hosts, b.Hosts...)
	}
	return NewKeys(testAuthority(t, hosts...), bound, nil)
}

// guard makes a network whose web server handles requests by h, for all names of the tests.
func guard(t testing.TB, p sandbox.NetworkPolicy, h http.HandlerFunc, bound ...Bound) *guarded {
	t.Helper()
	g := &guarded{place: network(t, p)}
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.seen = append(g.seen, r.Clone(context.Background()))
		g.mu.Unlock()
		if h != nil {
			h(w, r)
		}
	}))
	cert, pool := worldCertificate(t, "allowed.example", "www.wild.example", "other.example")
	g.server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	g.server.EnableHTTP2 = true
	g.server.Config.ErrorLog = quietLog()
	g.server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			g.raw.Add(1)
		}
	}
	g.server.StartTLS()
	t.Cleanup(g.server.Close)
	g.world.mu.Lock()
	for _, a := range []string{web, "93.184.216.2:443", "93.184.216.9:443"} {
		g.world.servers["tcp "+a] = g.server.Listener.Addr().String()
	}
	g.world.mu.Unlock()
	g.gate.o.Roots = pool
	g.pool = pool
	if len(bound) > 0 {
		g.bind(bound...)
	}
	for _, name := range []string{"allowed.example", "www.wild.example", "other.example"} {
		g.ask("127.0.0.1:53", name, dnsmessage.TypeA)
	}
	return g
}

// bind binds secrets, instead of what was bound.
func (g *guarded) bind(bound ...Bound) {
	g.Helper()
	k := keysOf(g, bound...)
	g.authority = k.authority
	g.gate.SetKeys(k)
}

// worldCertificate is one that the world has, and who vouches for it.
func worldCertificate(t testing.TB, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the world"}, DNSNames: names,
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

// roots are what the sandbox trusts: its authority and the world.
func (g *guarded) roots() *x509.CertPool {
	pool := g.pool.Clone()
	if g.authority != nil {
		pool.AppendCertsFromPEM(g.authority.PEM())
	}
	return pool
}

// tls connects to an address of the world as a program does, and says a name there.
func (g *guarded) tls(address, name string, protocols ...string) *tls.Conn {
	g.Helper()
	c, err := g.dial("tcp", address)
	if err != nil {
		g.Fatal(err)
	}
	t := tls.Client(c, &tls.Config{ServerName: name, RootCAs: g.roots(), NextProtos: protocols})
	if err := t.Handshake(); err != nil {
		g.Fatal(err)
	}
	return t
}

// client makes requests to an address of the world, whatever host they name.
func (g *guarded) client(address string, two bool) *http.Client {
	t := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			c, err := g.dial("tcp", address)
			if err == nil {
				err = c.SetDeadline(time.Now().Add(time.Minute))
			}
			return c, err
		},
		TLSClientConfig:    &tls.Config{RootCAs: g.roots()},
		ForceAttemptHTTP2:  two,
		DisableCompression: true,
	}
	g.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// do makes a request with what a program sends that has the stand-in.
func (g *guarded) do(c *http.Client, method, url string, change ...func(*http.Request)) (int, http.Header, string) {
	g.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		g.Fatal(err)
	}
	r.Header.Set("Authorization", standIn)
	for _, f := range change {
		f(r)
	}
	resp, err := c.Do(r)
	if err != nil {
		g.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		g.Fatal(err)
	}
	for name, values := range resp.Trailer {
		resp.Header["Trailer:"+name] = values
	}
	return resp.StatusCode, resp.Header, string(b)
}

// say writes to a connection of its own, and gives all that comes back.
func (g *guarded) say(address, name, text string) string {
	g.Helper()
	c := g.tls(address, name)
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		g.Fatal(err)
	}
	b, _ := io.ReadAll(c)
	return string(b)
}

// requests are those that the server saw since the last look.
func (g *guarded) requests() []*http.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.seen
	g.seen = nil
	return out
}

func echo(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "got %v", r.Header) }

func quietLog() *log.Logger { return log.New(io.Discard, "", 0) }

func cidrs(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}
