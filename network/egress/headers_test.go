// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

const plainWeb = "93.184.216.1:80"

// marked is a guarded network whose policy sets headers, with servers without TLS beside that with it.
func marked(t *testing.T, p sandbox.NetworkPolicy, headers sandbox.HostHeaders, bound ...Bound) *guarded {
	t.Helper()
	g := guard(t, p, echo)
	server := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(server.Close)
	g.world.mu.Lock()
	for _, a := range []string{plainWeb, "93.184.216.2:80", "93.184.216.9:80"} {
		g.world.servers["tcp "+a] = server.Listener.Addr().String()
	}
	g.world.mu.Unlock()
	g.mark(headers, bound...)
	return g
}

// mark puts headers in force, with bound secrets.
func (g *guarded) mark(headers sandbox.HostHeaders, bound ...Bound) {
	g.Helper()
	var hosts []string
	for h := range headers {
		hosts = append(hosts, h)
	}
	for _, b := range bound {
		hosts = append(hosts, b.Hosts...)
	}
	g.authority = testAuthority(g, hosts...)
	g.gate.SetKeys(NewKeys(g.authority, bound, headers))
}

// plain writes a text to a connection without TLS, and gives what comes back.
func (g *guarded) plain(address, text string) string {
	g.Helper()
	c, err := g.dial("tcp", address)
	if err != nil {
		g.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		g.Fatal(err)
	}
	b, _ := io.ReadAll(c)
	return string(b)
}

func TestRequestsTakeTheHeadersOfTheirHost(t *testing.T) {
	g := marked(t, restricted("allowed.example", "*.wild.example", "other.example"), sandbox.HostHeaders{
		"allowed.example": {"x-org": "acme", "x-empty": ""}, "*.wild.example": {"x-org": "wild", "x-more": "1"}, "www.wild.example": {"x-org": "www"},
	})
	spoof := func(r *http.Request) {
		r.Header.Set("X-Org", "mine")
		r.Header["X_Org"] = []string{"mine, too"}
		r.Header.Set("X-Other", "stays")
		r.Header.Set("Accept-Encoding", "br")
	}
	for _, c := range []struct {
		address, url string
		want         []string
	}{
		{web, "https://allowed.example/", []string{"X-Org:[acme]", "X-Empty:[]", "X-Other:[stays]", "Accept-Encoding:[br]", standIn}},
		{"93.184.216.2:443", "https://www.wild.example/", []string{"X-Org:[www]", "X-More:[1]"}},
		{plainWeb, "http://allowed.example/", []string{"X-Org:[acme]", "X-Empty:[]", "X-Other:[stays]"}},
		{"93.184.216.2:80", "http://www.wild.example/", []string{"X-Org:[www]", "X-More:[1]"}},
	} {
		for _, two := range []bool{false, true} {
			cl := g.client(c.address, two)
			for range 2 {
				status, _, body := g.do(cl, "GET", c.url, spoof)
				for _, want := range c.want {
					if status != 200 || !strings.Contains(body, want) {
						t.Errorf("%s: %d %s, without %s", c.url, status, body, want)
					}
				}
				if strings.Contains(body, "mine") {
					t.Errorf("%s: what the program wrote stays: %s", c.url, body)
				}
			}
		}
	}
	g.noted("tcp", "allowed.example", policy.Allowed)
}

func TestNoOtherHostGetsHeaders(t *testing.T) {
	g := marked(t, restricted("allowed.example", "other.example"), sandbox.HostHeaders{"allowed.example": {"x-org": "acme"}})
	for _, url := range []string{"https://other.example/", "http://other.example/"} {
		address := "93.184.216.9:443"
		if strings.HasPrefix(url, "http:") {
			address = "93.184.216.9:80"
		}
		if status, _, body := g.do(g.client(address, false), "GET", url); status != 200 || strings.Contains(body, "acme") {
			t.Errorf("%s: %d %s", url, status, body)
		}
	}
	if c := g.tls("93.184.216.9:443", "other.example"); c.ConnectionState().PeerCertificates[0].Subject.CommonName != "the world" {
		t.Error("its TLS is ended here")
	}
	// A host that the program names at another's address, which has no answer with it.
	if got := g.plain("93.184.216.9:80", "GET / HTTP/1.1\r\nHost: allowed.example\r\nConnection: close\r\n\r\n"); strings.Contains(got, "acme") {
		t.Errorf("another's address: %s", got)
	}
	// A host in the request that is not the connection's.
	for name, got := range map[string]string{
		"TLS":        g.say(web, "allowed.example", "GET / HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n"),
		"the next":   g.plain(plainWeb, "GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\nGET / HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n"),
		"a full URL": g.plain(plainWeb, "GET http://other.example/ HTTP/1.1\r\nHost: allowed.example\r\nConnection: close\r\n\r\n"),
	} {
		answers := strings.Count(got, "200 OK")
		if want := map[string]int{"the next": 1}[name]; answers != want || strings.Count(got, "acme") != want || name != "a full URL" && !strings.Contains(got, "421 Misdirected Request") {
			t.Errorf("%s: %s", name, got)
		}
	}
	g.noted("tcp", "other.example", policy.Disagreement)
	// A request within another, by two lengths, or folded lines: none leaves as two.
	for name, text := range map[string]string{
		"two lengths": "POST / HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
		"both":        "POST / HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 5\r\nTransfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n",
		"two hosts":   "GET / HTTP/1.1\r\nHost: allowed.example\r\nHost: other.example\r\n\r\n",
		"a tunnel":    "CONNECT allowed.example:80 HTTP/1.1\r\nHost: allowed.example:80\r\nConnection: close\r\n\r\n",
	} {
		if got := g.plain(plainWeb, text); strings.Contains(got, "200 OK") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestHeadersNextToSecrets(t *testing.T) {
	key := secret("KEY", "allowed.example")
	g := marked(t, restricted("allowed.example"), sandbox.HostHeaders{"allowed.example": {"x-org": "acme", "x-mark": "sandpit-secret-KEY"}}, key)
	status, _, body := g.do(g.client(web, true), "GET", "https://allowed.example/")
	if status != 200 || !strings.Contains(body, "X-Org:[acme]") || !strings.Contains(body, "X-Mark:[sandpit-secret-KEY]") || !strings.Contains(body, "Bearer "+strings.Repeat("*", len(value))) {
		t.Errorf("%d %s", status, body)
	}
	// Without TLS there are the headers, and no secret.
	if status, _, body := g.do(g.client(plainWeb, false), "GET", "http://allowed.example/"); status != 200 || !strings.Contains(body, "X-Org:[acme]") || !strings.Contains(body, standIn) || strings.Contains(body, value) {
		t.Errorf("%d %s", status, body)
	}
	// A secret's own header stays the secret's.
	g.mark(sandbox.HostHeaders{"allowed.example": {"authorization": "of the policy", "x-org": "acme"}}, key)
	g.requests()
	g.do(g.client(web, false), "GET", "https://allowed.example/")
	if r := g.requests(); len(r) != 1 || !slices.Equal(r[0].Header["Authorization"], []string{"Bearer " + value}) || r[0].Header.Get("X-Org") != "acme" {
		t.Errorf("got %v", r)
	}
}

func TestConnectionsEndWhenTheirHeadersChange(t *testing.T) {
	g := marked(t, restricted("allowed.example"), sandbox.HostHeaders{"allowed.example": {"x-org": "acme"}})
	for _, secure := range []bool{true, false} {
		g.mark(sandbox.HostHeaders{"allowed.example": {"x-org": "acme"}})
		c, err := g.dial("tcp", plainWeb)
		if err != nil {
			t.Fatal(err)
		}
		if secure {
			_ = c.Close()
			c = g.tls(web, "allowed.example", "http/1.1")
		}
		ask := func() string {
			_, _ = fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				return "ended"
			}
			b, _ := io.ReadAll(resp.Body)
			return string(b)
		}
		if got := ask(); !strings.Contains(got, "X-Org:[acme]") {
			t.Fatalf("got %s", got)
		}
		g.mark(sandbox.HostHeaders{"allowed.example": {"x-org": "acme"}, "other.example": {"x": "y"}})
		if got := ask(); !strings.Contains(got, "X-Org:[acme]") {
			t.Errorf("other hosts' headers: got %s", got)
		}
		g.mark(sandbox.HostHeaders{"allowed.example": {"x-org": "other"}})
		if got := ask(); got != "ended" {
			t.Errorf("got %s", got)
		}
		_ = c.Close()
	}
}

func TestHeadersOfWebSockets(t *testing.T) {
	g := marked(t, restricted("allowed.example"), sandbox.HostHeaders{"allowed.example": {"x-org": "acme"}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		_ = c.Write(r.Context(), websocket.MessageText, []byte(r.Header.Get("X-Org")))
	}))
	t.Cleanup(server.Close)
	g.world.mu.Lock()
	g.world.servers["tcp "+plainWeb] = server.Listener.Addr().String()
	g.world.mu.Unlock()
	c, _, err := websocket.Dial(t.Context(), "ws://allowed.example/", &websocket.DialOptions{HTTPClient: g.client(plainWeb, false)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if _, b, err := c.Read(t.Context()); err != nil || string(b) != "acme" {
		t.Errorf("got %q, %v", b, err)
	}
}
