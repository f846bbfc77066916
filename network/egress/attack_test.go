// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

func TestARequestThatNamesAnotherHost(t *testing.T) {
	g := guard(t, restricted("allowed.example", "other.example"), echo, secret("KEY", "allowed.example"))
	for _, head := range []string{
		"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x.allowed.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: 93.184.216.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: allowed.example:8443\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: allowed.example@other.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: allowed.example, other.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: allowed.example\r\nHost: other.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: allowed.example\r\nHost: allowed.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: allowed.example\r\n other.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost:\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		"GET https://other.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
		"GET http://other.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
		"GET https://allowed.example@other.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
		"CONNECT allowed.example:443 HTTP/1.1\r\nHost: allowed.example:443\r\n\r\n",
		"CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n",
		"TRACE / HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
		"TRACK / HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
	} {
		got := g.say(web, "allowed.example", strings.Replace(head, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
		if !strings.HasPrefix(got, "HTTP/1.1 4") && !strings.HasPrefix(got, "HTTP/1.0 4") {
			t.Errorf("%q: %q", head, got)
		}
	}
	if seen := g.requests(); len(seen) > 0 {
		t.Errorf("the host got %d requests, the first %s %s of %s", len(seen), seen[0].Method, seen[0].RequestURI, seen[0].Host)
	}
	g.noted("tcp", "other.example", policy.Disagreement)
	g.noted("tcp", "evil.example", policy.Disagreement)
	g.noted("tcp", "allowed.example", policy.Protocol)
	for _, head := range []string{
		"GET https://allowed.example/x HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n", // the target goes before (RFC 9112, 3.2.2)
		"GET /x HTTP/1.1\r\nhOST: ALLOWED.example.:443\r\nConnection: close\r\n\r\n",
	} {
		if got := g.say(web, "allowed.example", head); !strings.HasPrefix(got, "HTTP/1.1 200") {
			t.Errorf("%q: %q", head, got)
		}
		for _, r := range g.requests() {
			if host, _ := hostOf(r.Host); host != "allowed.example" || r.RequestURI != "/x" {
				t.Errorf("the host got %s of %s", r.RequestURI, r.Host)
			}
		}
	}
}

func TestAnAuthorityThatIsAnotherHost(t *testing.T) {
	g := guard(t, restricted("allowed.example", "other.example"), echo, secret("KEY", "allowed.example"))
	c := &http.Client{Transport: &http.Transport{
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			return g.tls(web, "allowed.example", "h2"), nil
		},
		ForceAttemptHTTP2: true,
	}}
	for url, want := range map[string]int{"https://other.example/": 421, "https://evil.example/": 421, "https://allowed.example:8443/": 421, "https://allowed.example/": 200} {
		status, _, _ := g.do(c, "GET", url)
		if status != want {
			t.Errorf("%s: %d", url, status)
		}
	}
	status, _, _ := g.do(c, "GET", "https://allowed.example/", func(r *http.Request) { r.Method = "TRACE" })
	if status != 405 {
		t.Errorf("TRACE: %d", status)
	}
	if seen := g.requests(); len(seen) != 1 {
		t.Errorf("the host got %d requests", len(seen))
	}
}

func TestRequestsAreNotSmuggled(t *testing.T) {
	g := guard(t, restricted("allowed.example"), func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "[%s]", b)
	}, secret("KEY", "allowed.example"))
	inner := "GET /inner HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n"
	for _, text := range []string{
		"POST /outer HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
		"POST /outer HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 6\r\nContent-Length: 0\r\n\r\n" + inner,
		"POST /outer HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" + inner,
		"POST /outer HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + inner,
		"POST /outer HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + inner,
		"POST /outer HTTP/1.1\r\nHost: allowed.example\r\nX: a\r\n\tTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + inner,
		"POST /outer HTTP/1.1\r\nHost: allowed.example\r\nX: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
		"POST /outer HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: +6\r\n\r\n" + inner,
		"GET /outer\tHTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 0\r\n\r\n" + inner,
	} {
		g.say(web, "allowed.example", text)
		for _, r := range g.requests() {
			// Whatever was made of it, the host got whole requests of ours, of its own name.
			if r.RequestURI != "/outer" || r.Host != "allowed.example" || r.Header.Get("Authorization") != "Bearer "+value || r.ProtoMajor != 2 {
				t.Errorf("%q: the host got %s %s of %s", text, r.Method, r.RequestURI, r.Host)
			}
		}
	}
}

func TestWhatAProgramPutsInTheHeader(t *testing.T) {
	g := guard(t, restricted("allowed.example"), func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, len(r.Trailer))
	}, secret("KEY", "allowed.example"),
		Bound{sandbox.Secret{Name: "B", Hosts: []string{"allowed.example"}, Header: "x-api-key", Format: "k={value}"}, "other value"})
	for _, lines := range []string{
		"authorization: mine\r\nAUTHORIZATION: mine\r\nX-Api-Key: mine\r\n",
		"x_api_key: mine\r\nX-API_key: mine\r\nauthorization: \r\n",
		"Connection: authorization, x-api-key, close\r\nAuthorization: mine\r\n",
		"Connection: close, authorization\r\nKeep-Alive: authorization\r\nProxy-Connection: x-api-key\r\n",
		"Authorization:\r\n mine\r\n",
		"Trailer: Authorization\r\nTransfer-Encoding: chunked\r\n",
	} {
		body := ""
		if strings.Contains(lines, "chunked") {
			body = "1\r\nx\r\n0\r\nAuthorization: mine\r\nX_api_key: mine\r\n\r\n"
		}
		if !strings.Contains(lines, "close") {
			lines += "Connection: close\r\n"
		}
		got := g.say(web, "allowed.example", "POST / HTTP/1.1\r\nHost: allowed.example\r\n"+lines+"\r\n"+body)
		if !strings.HasPrefix(got, "HTTP/1.1 200") || !strings.HasSuffix(strings.TrimSpace(got), "0") {
			t.Errorf("%q: %q", lines, got)
		}
		seen := g.requests()
		if len(seen) != 1 {
			t.Fatalf("%q: %d requests", lines, len(seen))
		}
		for name, values := range seen[0].Header {
			if strings.Contains(strings.Join(values, " "), "mine") {
				t.Errorf("%q: the host got %s: %q", lines, name, values)
			}
		}
		if h := seen[0].Header; h.Get("Authorization") != "Bearer "+value || h.Get("X-Api-Key") != "k=other value" {
			t.Errorf("%q: the host got %v", lines, h)
		}
	}
}

func TestWhichSecretGoesFirst(t *testing.T) {
	of := func(name string, id sandbox.ID, header, host string) Bound {
		return Bound{sandbox.Secret{Name: name, Sandbox: id, Hosts: []string{host}, Header: header, Format: "{value}"}, "value of " + name}
	}
	k := keysOf(t, of("B", "", "x-one", "a.example"), of("A", "", "x_one", "a.example"), of("Z", "id", "X-Two", "*.example"), of("Y", "", "x-two", "a.example"), of("C", "", "x-three", "b.example"))
	b := k.binding("a.example")
	h := http.Header{"X-One": {"mine"}, "X_one": {"mine"}, "X-Three": {"mine"}}
	b.put(h)
	if len(h) != 3 || h.Get("X_one") != "value of A" || h.Get("X-Two") != "value of Z" || h.Get("X-Three") != "mine" {
		t.Errorf("puts %v", h)
	}
	for name, want := range map[string]bool{"a.example": true, "sub.a.example": true, "example": false, "b.example": true, "c.other": false, "": false, "xexample": false} {
		if got := k.binding(name) != nil; got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestPlainHTTPNeverTakesASecret(t *testing.T) {
	for mode, p := range map[string]sandbox.NetworkPolicy{"restricted": restricted("allowed.example"), "open": {Mode: sandbox.NetworkOpen}} {
		t.Run(mode, func(t *testing.T) {
			g := guard(t, p, nil, secret("KEY", "allowed.example"))
			plain := httptest.NewServer(http.HandlerFunc(echo))
			defer plain.Close()
			for _, port := range []string{"80", "443"} {
				address := "93.184.216.1:" + port
				g.world.mu.Lock()
				g.world.servers["tcp "+address] = plain.Listener.Addr().String()
				g.world.mu.Unlock()
				status, body, err := g.get(address, "allowed.example")
				if status != 200 || err != nil || strings.Contains(body, "Authorization") {
					t.Errorf("%d %q %v", status, body, err)
				}
			}
			g.noted("tcp", "allowed.example", policy.Plaintext)
		})
	}
}

func TestAHostThatIsBoundIsNoMoreAllowed(t *testing.T) {
	g := guard(t, restricted("allowed.example"), echo, secret("KEY", "other.example"))
	c, err := g.dial("tcp", web)
	if err != nil {
		t.Fatal(err)
	}
	if err := tls.Client(c, &tls.Config{ServerName: "other.example", RootCAs: g.roots()}).Handshake(); err == nil || !strings.Contains(err.Error(), "access denied") {
		t.Errorf("the name at another host's address: %v", err)
	}
	g.noted("tcp", "other.example", policy.Disagreement)
	if c, err := g.dial("tcp", "93.184.216.9:443"); err == nil {
		if err := tls.Client(c, &tls.Config{ServerName: "other.example", RootCAs: g.roots()}).Handshake(); err == nil {
			t.Error("its own address can be connected to")
		}
	}
	g.noted("dns", "other.example", policy.Domain)
	if n := g.raw.Load(); n > 1 || len(g.requests()) > 0 {
		t.Errorf("the host was connected to %d times", n)
	}
}

func TestAnAddressOfAnotherHost(t *testing.T) {
	// Both names are allowed, and the bound one is said at the other's address, which has no
	// certificate for it.
	g := guard(t, restricted("allowed.example", "other.example"), echo, secret("KEY", "allowed.example"))
	cert, _ := worldCertificate(t, "allowed.example") // vouched for by nobody
	evil := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("it got %v", r.Header) }))
	evil.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	evil.Config.ErrorLog = quietLog()
	evil.StartTLS()
	defer evil.Close()
	g.world.mu.Lock()
	g.world.servers["tcp 93.184.216.9:443"] = evil.Listener.Addr().String()
	g.world.mu.Unlock()
	status, _, body := g.do(g.client("93.184.216.9:443", true), "GET", "https://allowed.example/")
	if status != 502 || !strings.Contains(body, "does not verify") {
		t.Errorf("%d %q", status, body)
	}
	g.noted("tcp", "allowed.example", policy.Certificate)
}
