// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

type right struct{}

func (right) Admit(_ context.Context, token string) (access.Caller, context.Context, func(), error) {
	if token != "right" {
		return access.Caller{}, nil, nil, fault.New(fault.Unauthenticated, "the token is not valid")
	}
	return access.Caller{Project: "default"}, context.Background(), func() {}, nil
}

// crowd is a server behind a bounded listener.
type crowd struct {
	testing.TB
	l       *Listener
	addr    string
	handler http.Handler
}

func newCrowd(t *testing.T, most int, h http.HandlerFunc, change ...func(*Options)) *crowd {
	t.Helper()
	o := Options{Tokens: right{}}
	for _, f := range change {
		f(&o)
	}
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener(inner, most)
	mux := http.NewServeMux()
	mux.Handle("/open/", g.WrapOpen(h))
	mux.Handle("/", g.Wrap("rest", h))
	s := &http.Server{Handler: mux, ConnContext: l.Context, ConnState: l.State}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	return &crowd{t, l, inner.Addr().String(), mux}
}

// dial connects from an address of loopback.
func (c *crowd) dial(from string) net.Conn {
	c.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	nc, err := d.Dial("tcp", c.addr)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = nc.Close() })
	return nc
}

// half connects and sends half of a request.
func (c *crowd) half(from string) net.Conn {
	nc := c.dial(from)
	_, _ = io.WriteString(nc, "GET / HTTP/1.1\r\nHost: local")
	return nc
}

// ask sends a request on a connection and reads the answer.
func (c *crowd) ask(nc net.Conn, token string) int {
	c.Helper()
	if _, err := fmt.Fprintf(nc, "GET /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", token); err != nil {
		c.Errorf("a request: %v", err)
		return 0
	}
	resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		c.Errorf("an answer: %v", err)
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func (c *crowd) counted() (n int) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	sum := 0
	for _, m := range c.l.of {
		sum += m
	}
	if sum != c.l.all.Len() {
		c.Errorf("%d connections by address, %d in all", sum, c.l.all.Len())
	}
	return sum
}

// ended waits until the server has ended a connection.
func ended(t testing.TB, nc net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, nc); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("it ended by %v", err)
	}
}

func nothing(http.ResponseWriter, *http.Request) {}

// However many half-sent requests there are, also of its own address, a client with a token
// has its answer, and what they hold is bounded.
func TestATokenIsAnsweredAmidConnectionsWithoutOne(t *testing.T) {
	const most = 16
	c := newCrowd(t, most, nothing)
	var known []net.Conn
	for range 2 * most {
		nc := c.dial("127.0.0.1")
		if got := c.ask(nc, "right"); got != 200 {
			t.Fatalf("with a token: %d", got)
		}
		known = append(known, nc)
	}
	var half []net.Conn
	for n := range 10 * most {
		half = append(half, c.half(fmt.Sprintf("127.0.0.%d", 1+n%3)))
		if n%most == 0 {
			if got := c.ask(c.dial("127.0.0.1"), "right"); got != 200 {
				t.Errorf("beside %d half-sent requests: %d", n+1, got)
			}
		}
	}
	for _, nc := range half[:9*most] {
		ended(t, nc)
	}
	if n := c.counted(); n > most {
		t.Errorf("%d connections without a token are open, want at most %d", n, most)
	}
	for _, nc := range known {
		if got := c.ask(nc, "right"); got != 200 {
			t.Errorf("on a connection that has shown a token: %d", got)
		}
	}
}

// One address ends its own connections, not those of others.
func TestAnAddressHasAShareOfTheConnections(t *testing.T) {
	c := newCrowd(t, 16, nothing)
	other := c.half("127.0.0.2")
	var half []net.Conn
	for range 40 {
		half = append(half, c.half("127.0.0.1"))
	}
	for _, nc := range half[:32] {
		ended(t, nc)
	}
	if _, err := io.WriteString(other, "host\r\nAuthorization: Bearer right\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(other), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("the other address: %v, %v", resp, err)
	}
	if n := c.counted(); n != 8 {
		t.Errorf("%d count, want the 8 of the first address", n)
	}
}

// What waits goes before what is being answered, and that is bounded, too.
func TestConnectionsThatWaitGoFirst(t *testing.T) {
	begun, release := make(chan struct{}, 100), make(chan struct{})
	c := newCrowd(t, 8, func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-release
	})
	slow := func() net.Conn {
		nc := c.dial("127.0.0.1")
		_, _ = io.WriteString(nc, "GET /open/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
		<-begun
		return nc
	}
	first := slow()
	var half []net.Conn
	for range 20 {
		half = append(half, c.half("127.0.0.1"))
	}
	for _, nc := range half[:17] {
		ended(t, nc)
	}
	var more []net.Conn
	for range 4 {
		more = append(more, slow())
	}
	ended(t, first) // for now all of the address's are being answered
	close(release)
	for _, nc := range more {
		resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("what was being answered: %v, %v", resp, err)
		}
	}
	if n := c.counted(); n > 4 {
		t.Errorf("%d count, want at most 4", n)
	}
}

// A wrong token does not count as a token.
func TestAWrongTokenLeavesAConnectionCounted(t *testing.T) {
	c := newCrowd(t, 8, nothing)
	nc := c.dial("127.0.0.1")
	if got := c.ask(nc, "wrong"); got != 401 {
		t.Fatalf("got %d", got)
	}
	if n := c.counted(); n != 1 {
		t.Errorf("%d count, want 1", n)
	}
	if c.ask(nc, "right"); c.counted() != 0 {
		t.Error("it counts after the right one")
	}
}

// A client that is gone ends the work for it, though its body was not read yet.
func TestAClientThatIsGoneIsNoticed(t *testing.T) {
	begun, over := make(chan struct{}), make(chan error, 1)
	c := newCrowd(t, 8, func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := WhilePresent(r.Context())
		defer stop()
		_, _ = r.Body.Read(make([]byte, 1))
		close(begun)
		<-ctx.Done()
		over <- r.Context().Err()
	})
	nc := c.dial("127.0.0.1")
	if _, err := io.WriteString(nc, "POST /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer right\r\nContent-Length: 1000\r\n\r\n"+string(make([]byte, 1000))); err != nil {
		t.Fatal(err)
	}
	<-begun
	_ = nc.Close()
	if err := <-over; err != nil {
		t.Errorf("the request's own context ended by itself: %v; WhilePresent is not needed", err)
	}
}

// A body that dribbles ends its request, though a stall never lasts.
func TestABodyThatDribblesIsTooSlow(t *testing.T) {
	got := make(chan error, 1)
	c := newCrowd(t, 8, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		got <- err
	}, func(o *Options) { o.Stall, o.Rate = 100*time.Millisecond, 1<<20 })
	nc := c.dial("127.0.0.1")
	_, _ = io.WriteString(nc, "POST /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer right\r\nContent-Length: 100000\r\n\r\n")
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-got:
			if !fault.Is(err, fault.Timeout) || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("it ended by %v, want a timeout", err)
			}
			return
		case <-tick.C:
			_, _ = nc.Write([]byte{0})
		}
	}
}

// A handler that takes its time is not its client's fault.
func TestAHandlerMayTakeItsTimeForABody(t *testing.T) {
	const stall = 50 * time.Millisecond
	c := newCrowd(t, 8, func(w http.ResponseWriter, r *http.Request) {
		for range 10 {
			time.Sleep(stall) // the work on what came
			if _, err := io.ReadFull(r.Body, make([]byte, 100)); err != nil {
				t.Errorf("read: %v", err)
				return
			}
		}
	}, func(o *Options) { o.Stall, o.Rate = stall, 1 })
	nc := c.dial("127.0.0.1")
	_, _ = io.WriteString(nc, "POST /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer right\r\nContent-Length: 1000\r\n\r\n"+string(make([]byte, 1000)))
	resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("got %v, %v", resp, err)
	}
}

// Connections with TLS count like those without, together with them, and no longer once they have
// shown a token.
func TestConnectionsWithTLSCountBesideTheOthers(t *testing.T) {
	c := newCrowd(t, 8, nothing)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(c.handler)
	s.Listener, s.EnableHTTP2 = c.l.Beside(inner), true
	s.Config.ConnContext, s.Config.ConnState = c.l.Context, c.l.State
	s.StartTLS()
	t.Cleanup(s.Close)
	ask := func(token string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.ProtoMajor != 2 {
			t.Errorf("it is answered by %s, want HTTP/2", resp.Proto)
		}
	}
	counts := func(when string, want int) {
		t.Helper()
		for c.counted() != want { // the test's time limit ends it
			if t.Context().Err() != nil {
				t.Fatalf("%s %d connections count, want %d", when, c.counted(), want)
			}
			time.Sleep(time.Millisecond)
		}
	}
	ask("wrong")
	counts("after a wrong token", 1)
	c.half("127.0.0.1")
	counts("beside one without TLS", 2)
	ask("right")
	counts("after a right token", 1)
}
