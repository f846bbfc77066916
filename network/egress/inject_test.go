// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

func TestRequestsTakeTheSecret(t *testing.T) {
	g := guard(t, restricted("allowed.example"), echo, secret("KEY", "allowed.example"))
	for _, two := range []bool{false, true} {
		c := g.client(web, two)
		for range 3 {
			status, _, body := g.do(c, "GET", "https://allowed.example/a%2Fb//c?q=%zz;x&y=1#f")
			if status != 200 || strings.Contains(body, value) || strings.Contains(body, standIn) || !strings.Contains(body, "Bearer "+strings.Repeat("*", len(value))) {
				t.Errorf("%d %q", status, body)
			}
		}
		for _, r := range g.requests() {
			if got := r.Header["Authorization"]; !slices.Equal(got, []string{"Bearer " + value}) {
				t.Errorf("the host got %q", got)
			}
			if r.Host != "allowed.example" || r.RequestURI != "/a%2Fb//c?q=%zz;x&y=1" || r.ProtoMajor != 2 {
				t.Errorf("the host got %s %s %s", r.Host, r.RequestURI, r.Proto)
			}
		}
	}
	if n := g.raw.Load(); n != 2 {
		t.Errorf("%d connections to the host for two of the program's", n)
	}
	g.noted("tcp", "allowed.example", policy.Allowed)
}

func TestOtherHostsAreNotLookedInto(t *testing.T) {
	g := guard(t, restricted("allowed.example", "other.example"), echo, secret("KEY", "allowed.example"))
	status, _, body := g.do(g.client("93.184.216.9:443", true), "GET", "https://other.example/")
	if status != 200 || !strings.Contains(body, standIn) {
		t.Errorf("%d %q", status, body)
	}
	c := g.tls("93.184.216.9:443", "other.example")
	if c.ConnectionState().PeerCertificates[0].Subject.CommonName != "the world" {
		t.Error("its TLS is ended here")
	}
}

func TestLargeBodiesBothWays(t *testing.T) {
	const size = 4 << 20 // more than any buffer on the way
	g := guard(t, restricted("allowed.example"), func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Got", fmt.Sprint(n))
		_, _ = io.CopyN(w, rand.Reader, size)
	}, secret("KEY", "allowed.example"))
	for _, two := range []bool{false, true} {
		r, _ := http.NewRequest("POST", "https://allowed.example/", io.LimitReader(rand.Reader, size))
		resp, err := g.client(web, two).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if n != size || err != nil || resp.Header.Get("X-Got") != fmt.Sprint(size) {
			t.Errorf("down %d, up %s, %v", n, resp.Header.Get("X-Got"), err)
		}
	}
}

func TestEventsComeAtOnce(t *testing.T) {
	for _, two := range []bool{false, true} {
		next := make(chan struct{}, 1)
		g := guard(t, restricted("allowed.example"), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range next {
				fmt.Fprintf(w, "data: %s\n\n", r.Header.Get("Authorization"))
				_ = http.NewResponseController(w).Flush()
			}
		}, secret("KEY", "allowed.example"))
		next <- struct{}{}
		resp, err := g.client(web, two).Get("https://allowed.example/")
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(resp.Body)
		for range 3 { // each is here before the next is sent
			line, err := lines.ReadString('\n')
			if err != nil || line != "data: Bearer "+strings.Repeat("*", len(value))+"\n" {
				t.Fatalf("%q, %v", line, err)
			}
			if _, err := lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			next <- struct{}{}
		}
		close(next)
		_ = resp.Body.Close()
	}
}

func TestWebSockets(t *testing.T) {
	g := guard(t, restricted("allowed.example"), func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover})
		if err != nil {
			return
		}
		defer c.CloseNow()
		ctx := context.Background()
		_ = c.Write(ctx, websocket.MessageText, []byte("got "+r.Header.Get("Authorization")))
		for {
			kind, b, err := c.Read(ctx)
			if err != nil || c.Write(ctx, kind, b) != nil {
				return
			}
		}
	}, secret("KEY", "allowed.example"))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, _, err := websocket.Dial(ctx, "wss://allowed.example/", &websocket.DialOptions{
		HTTPClient: g.client(web, false), CompressionMode: websocket.CompressionContextTakeover, HTTPHeader: http.Header{"Authorization": {standIn}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if _, b, err := c.Read(ctx); string(b) != "got Bearer "+strings.Repeat("*", len(value)) || err != nil {
		t.Fatalf("%q, %v", b, err)
	}
	for _, text := range []string{"ping", "ends with " + value[:1], "ends with " + value[:3]} { // each must come without another byte
		if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, b, err := c.Read(ctx); string(b) != text || err != nil {
			t.Fatalf("%q, %v", b, err)
		}
	}
	g.gate.SetKeys(nil)
	if _, _, err := c.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("a connection outlives what it carries: %v", err)
	}
}

func TestNoOtherUpgrade(t *testing.T) {
	g := guard(t, restricted("allowed.example"), echo, secret("KEY", "allowed.example"))
	for _, kind := range []string{"h2c", "tcp", "websocket, h2c", "TLS/1.2"} {
		got := g.say(web, "allowed.example", "GET / HTTP/1.1\r\nHost: allowed.example\r\nConnection: Upgrade, close\r\nUpgrade: "+kind+"\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 200") {
			t.Errorf("%s: %q", kind, got)
		}
		for _, r := range g.requests() {
			if r.Header.Get("Upgrade") != "" {
				t.Errorf("the host is asked to become %q", r.Header.Get("Upgrade"))
			}
		}
	}
}

func TestOpenAndLearningNetworksTakeSecrets(t *testing.T) {
	learning := restricted("elsewhere.example")
	learning.Learn = true
	listed := sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowCIDRs: cidrs("93.184.216.0/24")}
	for mode, p := range map[string]sandbox.NetworkPolicy{"open": {Mode: sandbox.NetworkOpen}, "learning": learning, "listed": listed} {
		t.Run(mode, func(t *testing.T) {
			g := guard(t, p, echo, secret("KEY", "allowed.example"))
			if status, _, body := g.do(g.client(web, true), "GET", "https://allowed.example/"); status != 200 || !strings.Contains(body, "Bearer ***") {
				t.Errorf("%d %q", status, body)
			}
			if status, _, body := g.do(g.client("93.184.216.9:443", true), "GET", "https://other.example/"); status != 200 || !strings.Contains(body, standIn) {
				t.Errorf("another host: %d %q", status, body)
			}
			// Without a name nobody can say whom it is for.
			c, err := g.dial("tcp", web)
			if err != nil {
				t.Fatal(err)
			}
			bare := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
			fmt.Fprintf(bare, "GET / HTTP/1.1\r\nHost: allowed.example\r\nConnection: close\r\n\r\n")
			if b, _ := io.ReadAll(bare); !strings.HasPrefix(string(b), "HTTP/1.1 200") || strings.Contains(string(b), "Authorization") {
				t.Errorf("without a name: %q", b)
			}
			// A server that speaks first is not kept waiting.
			g.world.serve(t, "93.184.216.1:22", func(c net.Conn) { _, _ = io.WriteString(c, "hello") })
			s, err := g.dial("tcp", "93.184.216.1:22")
			if err != nil {
				t.Fatal(err)
			}
			_ = s.SetDeadline(time.Now().Add(firstBound / 2))
			if b, err := io.ReadAll(s); string(b) != "hello" || err != nil {
				t.Errorf("%q, %v", b, err)
			}
			if mode == "learning" {
				entries, _ := g.journal.Entries()
				if !slices.ContainsFunc(entries, func(e Entry) bool { return e.Protocol == "tcp" && e.Name == "allowed.example" && e.Learned }) {
					t.Errorf("what was learnt is not noted: %+v", entries)
				}
			}
		})
	}
}

func TestRedirectsDoNotCarryIt(t *testing.T) {
	g := guard(t, restricted("allowed.example", "other.example"), func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "allowed.example" {
			http.Redirect(w, r, "https://other.example/?key="+r.Header.Get("Authorization"), http.StatusTemporaryRedirect)
			return
		}
		echo(w, r)
	}, secret("KEY", "allowed.example"))
	status, h, _ := g.do(g.client(web, true), "GET", "https://allowed.example/")
	if to := h.Get("Location"); status != 307 || strings.Contains(to, "s3cr3t") || !strings.Contains(to, "*****") {
		t.Errorf("%d to %q", status, to)
	}
	_, _, body := g.do(g.client("93.184.216.9:443", true), "GET", h.Get("Location"))
	if strings.Contains(body, value) {
		t.Errorf("the other host got %q", body)
	}
}

func TestWhatIsBoundChangesAtOnce(t *testing.T) {
	g := guard(t, restricted("allowed.example", "other.example"), echo)
	first := secret("KEY", "allowed.example")
	g.authority = testAuthority(t, "allowed.example")
	c, o := g.client(web, false), g.client("93.184.216.9:443", false)
	_, _, body := g.do(c, "GET", "https://allowed.example/")
	g.do(o, "GET", "https://other.example/")
	if !strings.Contains(body, standIn) || g.raw.Load() != 2 {
		t.Fatalf("before: %q", body)
	}
	check := func(what, auth string, connections int64) {
		t.Helper()
		g.requests()
		g.do(c, "GET", "https://allowed.example/")
		g.do(o, "GET", "https://other.example/")
		if got := g.requests()[0].Header.Get("Authorization"); got != auth {
			t.Errorf("%s: the host got %q", what, got)
		}
		if n := g.raw.Load(); n != connections {
			t.Errorf("%s: %d connections, want %d", what, n, connections)
		}
	}
	g.gate.SetKeys(NewKeys(g.authority, []Bound{first}, nil))
	check("bound", "Bearer "+value, 3)
	g.gate.SetKeys(NewKeys(g.authority, []Bound{first}, nil))
	check("bound again", "Bearer "+value, 3)
	second := first
	second.Value = "another value"
	g.gate.SetKeys(NewKeys(g.authority, []Bound{second}, nil))
	check("another value", "Bearer another value", 4)
	g.gate.SetKeys(nil)
	check("unbound", standIn, 5)
	g.gate.SetKeys(NewKeys(g.authority, []Bound{first}, nil))
	check("bound after all", "Bearer "+value, 6)
	g.gate.SetPolicy(rules("other.example"))
	r, _ := http.NewRequest("GET", "https://allowed.example/", nil)
	if _, err := c.Do(r); err == nil {
		t.Error("a policy that forbids the host does not cut the connection")
	}
}

func TestAnOpenNetworksConnectionsFollowTheBinding(t *testing.T) {
	g := guard(t, sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, echo)
	c := g.client(web, false)
	g.do(c, "GET", "https://allowed.example/")
	g.authority = testAuthority(t, "allowed.example")
	g.gate.SetKeys(NewKeys(g.authority, []Bound{secret("KEY", "allowed.example")}, nil))
	c = g.client(web, false)
	g.requests()
	g.do(c, "GET", "https://allowed.example/")
	if got := g.requests()[0].Header.Get("Authorization"); got != "Bearer "+value {
		t.Errorf("the host got %q", got)
	}
}

func TestAProgramThatDoesNotTrustTheAuthority(t *testing.T) {
	g := guard(t, restricted("allowed.example"), echo, secret("KEY", "allowed.example"))
	c, err := g.dial("tcp", web)
	if err != nil {
		t.Fatal(err)
	}
	if err := tls.Client(c, &tls.Config{ServerName: "allowed.example", RootCAs: g.pool}).Handshake(); err == nil {
		t.Fatal("it trusts")
	}
	until(t, "a note", func() bool {
		all, _ := g.journal.Entries()
		return slices.ContainsFunc(all, func(e Entry) bool {
			return e.Reason == policy.Untrusted && strings.Contains(e.Explain(), "SSL_CERT_FILE")
		})
	})
	if curl, err := exec.LookPath("curl"); err == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() { _ = exec.Command(curl, "-sS", "--max-time", "10", "https://"+l.Addr().String()).Run() }()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		cert, err := g.authority.certificate("allowed.example")
		if err != nil {
			t.Fatal(err)
		}
		if err := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*cert}}).Handshake(); handshakeFailure(err) != policy.Untrusted {
			t.Errorf("curl's failure is %v", err)
		}
	}
	// One that looks when the handshake is done.
	g2 := guard(t, restricted("allowed.example"), echo, secret("KEY", "allowed.example"))
	late := g2.tls(web, "allowed.example")
	_ = late.Close()
	until(t, "a note", func() bool {
		all, _ := g2.journal.Entries()
		return slices.ContainsFunc(all, func(e Entry) bool { return e.Reason == policy.Untrusted })
	})
	// One that speaks no HTTP.
	if c, err = g2.dial("tcp", web); err != nil {
		t.Fatal(err)
	}
	if err := tls.Client(c, &tls.Config{ServerName: "allowed.example", RootCAs: g2.roots(), NextProtos: []string{"postgresql"}}).Handshake(); err == nil {
		t.Error("it speaks")
	}
	until(t, "a note", func() bool {
		all, _ := g2.journal.Entries()
		return slices.ContainsFunc(all, func(e Entry) bool { return e.Reason == policy.Protocol })
	})
}

func TestRequestsAreBounded(t *testing.T) {
	hold := make(chan struct{})
	g := guard(t, restricted("allowed.example"), func(http.ResponseWriter, *http.Request) { <-hold }, secret("KEY", "allowed.example"))
	for range maxRequests {
		g.gate.requests <- struct{}{}
	}
	status, _, body := g.do(g.client(web, true), "GET", "https://allowed.example/")
	if status != 503 || !strings.Contains(body, "too many") {
		t.Errorf("%d %q", status, body)
	}
	<-g.gate.requests
	done := make(chan error, 1)
	go func() {
		resp, err := g.client(web, true).Get("https://allowed.example/")
		if err == nil {
			_ = resp.Body.Close()
		}
		done <- err
	}()
	until(t, "a request", func() bool { return len(g.requests()) == 1 })
	close(hold)
	if err := <-done; err != nil {
		t.Error(err)
	}
	until(t, "its place", func() bool { return len(g.gate.requests) == maxRequests-1 })
	big := "GET / HTTP/1.1\r\nHost: allowed.example\r\nX: " + strings.Repeat("x", 2*maxRequestHead) + "\r\n\r\n"
	<-g.gate.requests
	if got := g.say(web, "allowed.example", big); !strings.HasPrefix(got, "HTTP/1.1 431") {
		t.Errorf("a long head: %.100q", got)
	}
}

func TestTheHostEndsItsConnections(t *testing.T) {
	g := guard(t, restricted("allowed.example"), func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") }, secret("KEY", "allowed.example"))
	c := g.client(web, false)
	for range 3 {
		if status, _, _ := g.do(c, "GET", "https://allowed.example/"); status != 200 {
			t.Error(status)
		}
	}
	g.world.mu.Lock()
	delete(g.world.servers, "tcp "+web)
	g.world.mu.Unlock()
	g.server.CloseClientConnections()
	until(t, "words", func() bool {
		status, _, body := g.do(c, "GET", "https://allowed.example/")
		return status == 502 && strings.Contains(body, "allowed.example did not answer")
	})
}

func TestEarlyHints(t *testing.T) {
	g := guard(t, restricted("allowed.example"), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</"+r.Header.Get("Authorization")+">")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
	}, secret("KEY", "allowed.example"))
	got := g.say(web, "allowed.example", "GET / HTTP/1.1\r\nHost: allowed.example\r\nConnection: close\r\n\r\n")
	r := textproto.NewReader(bufio.NewReader(strings.NewReader(got)))
	line, _ := r.ReadLine()
	h, _ := r.ReadMIMEHeader()
	if !strings.Contains(line, "103") || h.Get("Link") != "</Bearer "+strings.Repeat("*", len(value))+">" || strings.Contains(got, value) {
		t.Errorf("%q", got)
	}
}

func TestTheFirstUseOfASecretForAHostIsNews(t *testing.T) {
	var told []string
	j := NewJournal(func(e Entry) { told = append(told, e.Secret+" "+e.Name) })
	for range 3 {
		j.use("KEY", "one.example")
		j.use("KEY", "two.example")
		j.use("OTHER", "one.example")
	}
	for i := range 2 * maxEntries {
		j.use("KEY", fmt.Sprintf("h%d.example", i))
	}
	if len(told) != maxEntries || !slices.Equal(told[:3], []string{"KEY one.example", "KEY two.example", "OTHER one.example"}) {
		t.Errorf("%d were told, first %q", len(told), told[:3])
	}
	if entries, _ := j.Entries(); len(entries) != 0 {
		t.Errorf("it is among what was tried: %+v", entries)
	}
}
