// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"sandpit.dev/network/policy"
	"sandpit.dev/redact/deep"
	"sandpit.dev/runtime"
)

// Bounds of requests that take secrets.
const (
	maxRequests     = 256 // of one sandbox at a time
	maxStreamsEach  = 100 // of one connection at a time
	maxUpstream     = 8   // connections to the host for one from the sandbox
	maxRequestHead  = maxFirst
	maxResponseHead = 256 << 10        // bytes
	handshakeBound  = 10 * time.Second // for TLS, on either side
	headBound       = 60 * time.Second // for a request's head, and for the first request to come
	idleBound       = 2 * time.Minute
	freshFor        = 5 * time.Second // that a connection to the host is used which nothing was said on
	continueBound   = time.Second
	lateLook        = 5 * time.Second // after a handshake, for a program that looks at the certificate only then
)

// injection is one connection from the sandbox whose TLS ends here, or that has none: its requests are read, get what
// is bound to the host, and go on over a connection of our own.
type injection struct {
	g     *Gate
	f     *flow
	name  string
	bound *binding
	via   *http.Transport
	proxy *httputil.ReverseProxy

	mu       sync.Mutex
	over     bool
	asked    bool // there was a request
	spare    net.Conn
	dialled  time.Time // spare
	upstream map[*upstream]struct{}
	handlers sync.WaitGroup
}

// upstream is a connection to the host.
type upstream struct {
	net.Conn
	i *injection
}

func (u *upstream) Close() error {
	u.i.mu.Lock()
	delete(u.i.upstream, u)
	u.i.mu.Unlock()
	return u.Conn.Close()
}

func (u *upstream) Read(b []byte) (int, error) {
	n, err := u.Conn.Read(b)
	u.i.g.o.Counter.in.Add(int64(n))
	return n, err
}

func (u *upstream) Write(b []byte) (int, error) {
	n, err := u.Conn.Write(b)
	u.i.g.o.Counter.out.Add(int64(n))
	return n, err
}

// inject is the life of a connection whose first bytes began TLS with a bound host. remote is
// connected to where it was meant to go, and nothing was said there.
func (g *Gate) inject(ctx context.Context, c, remote runtime.Conn, first []byte, f *flow, b *binding) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i := &injection{g: g, f: f, name: *f.said.Load(), bound: b, spare: remote, dialled: time.Now(), upstream: make(map[*upstream]struct{})}
	i.via = &http.Transport{
		DialContext:           i.dial,
		TLSClientConfig:       &tls.Config{ServerName: i.name, RootCAs: g.o.Roots, MinVersion: tls.VersionTLS12, ClientSessionCache: g.sessions},
		TLSHandshakeTimeout:   handshakeBound,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true,
		MaxConnsPerHost:       maxUpstream,
		MaxIdleConnsPerHost:   maxUpstream,
		IdleConnTimeout:       idleBound,
		ExpectContinueTimeout: continueBound,

		MaxResponseHeaderBytes: maxResponseHead,
	}
	i.proxy = &httputil.ReverseProxy{
		Rewrite: i.rewrite, Transport: i, ModifyResponse: i.modify, ErrorHandler: i.failed,
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
	}
	defer i.end()
	g.mu.Lock()
	f.close = func() { reset(c); cancel(); i.cut() }
	gone := f.ended.Load() || ctx.Err() != nil
	g.mu.Unlock()
	if gone {
		reset(c)
		return
	}
	if b.plain {
		i.serve(ctx, &replayed{Conn: c, first: first})
		return
	}
	t := tls.Server(&replayed{Conn: c, first: first}, b.keys.authority.config)
	hctx, done := context.WithTimeout(ctx, handshakeBound)
	err := t.HandshakeContext(hctx)
	done()
	if err != nil {
		if !f.ended.Load() && ctx.Err() == nil {
			i.note(i.name, handshakeFailure(err))
		}
		return
	}
	begun := time.Now()
	i.serve(ctx, t)
	i.mu.Lock()
	asked := i.asked
	i.mu.Unlock()
	// Some programs look at the certificate only when the handshake is done.
	if !asked && !f.ended.Load() && ctx.Err() == nil && time.Since(begun) < lateLook {
		i.note(i.name, policy.Untrusted)
	}
}

// handshakeFailure tells what ended a handshake.
func handshakeFailure(err error) policy.Reason {
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "remote error", // an alert
		// OpenSSL says which one in the clear, when nothing is to be in the clear any more.
		op != nil && op.Op == "local error" && strings.HasSuffix(op.Error(), "bad record MAC"),
		errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return policy.Untrusted
	}
	return policy.Protocol
}

// serve answers requests until the connection ends, and waits for all of them.
func (i *injection) serve(ctx context.Context, t net.Conn) {
	l := &single{c: t, done: make(chan struct{})}
	s := &http.Server{
		Handler:           i,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headBound,
		IdleTimeout:       idleBound,
		MaxHeaderBytes:    maxRequestHead,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreamsEach},
		ErrorLog:          log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed || s == http.StateHijacked {
				_ = l.Close()
			}
		},
	}
	if !i.bound.plain {
		s.TLSConfig = i.bound.keys.authority.config // it offers HTTP/2
	}
	_ = s.Serve(l) // until the connection ends, or is a request's own
	i.handlers.Wait()
}

// single is a listener of one connection.
type single struct {
	c     net.Conn
	taken bool
	done  chan struct{}
	once  sync.Once
}

func (s *single) Accept() (net.Conn, error) {
	if !s.taken {
		s.taken = true
		return s.c, nil
	}
	<-s.done
	return nil, net.ErrClosed
}

func (s *single) Close() error   { s.once.Do(func() { close(s.done) }); return nil }
func (s *single) Addr() net.Addr { return s.c.LocalAddr() }

// replayed is a connection of which some was read already.
type replayed struct {
	runtime.Conn
	first []byte
}

func (r *replayed) Read(p []byte) (int, error) {
	if len(r.first) > 0 {
		n := copy(p, r.first)
		r.first = r.first[n:]
		return n, nil
	}
	return r.Conn.Read(p)
}

// cut ends all that leads to the host.
func (i *injection) cut() {
	i.mu.Lock()
	i.over = true
	all := make([]net.Conn, 0, len(i.upstream)+1)
	for u := range i.upstream {
		all = append(all, u.Conn)
	}
	if i.spare != nil {
		all = append(all, i.spare)
	}
	i.mu.Unlock()
	for _, c := range all {
		if t, ok := c.(*net.TCPConn); ok {
			reset(t)
			continue
		}
		_ = c.Close()
	}
}

func (i *injection) end() {
	i.via.CloseIdleConnections()
	i.cut()
}

// dial connects to the host: to the address that the program connected to, whatever name
// the transport thinks of.
func (i *injection) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	i.mu.Lock()
	c := i.spare
	i.spare = nil
	i.mu.Unlock()
	if c != nil && time.Since(i.dialled) > freshFor { // the host may have lost patience
		_ = c.Close()
		c = nil
	}
	if c == nil {
		ctx, cancel := context.WithTimeout(ctx, dialBound)
		defer cancel()
		var err error
		if c, err = i.g.o.Dial(ctx, "tcp", i.f.to.String()); err != nil {
			return nil, err
		}
	}
	u := &upstream{c, i}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	i.upstream[u] = struct{}{}
	return u, nil
}

// ServeHTTP passes on a request, or refuses it.
func (i *injection) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	if i.over {
		i.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	i.handlers.Add(1)
	i.asked = true
	i.mu.Unlock()
	defer i.handlers.Done()
	select {
	case i.g.requests <- struct{}{}:
		defer func() { <-i.g.requests }()
	default:
		i.refuse(w, http.StatusServiceUnavailable, i.name, policy.Limit)
		return
	}
	switch host, ok := i.host(r.Host); {
	case !ok:
		i.refuse(w, http.StatusMisdirectedRequest, host, policy.Disagreement)
	case r.Method == http.MethodConnect, r.Method == http.MethodTrace, r.Method == "TRACK", r.Method == "DEBUG":
		// A tunnel would have requests that are not looked at; the others send back what they got.
		i.refuse(w, http.StatusMethodNotAllowed, i.name, policy.Protocol)
	default:
		i.proxy.ServeHTTP(w, r)
	}
}

// host tells which host a request names, and whether it is the one that the
// connection is for.
func (i *injection) host(said string) (string, bool) {
	name, ok := hostOf(said)
	switch {
	case !ok, name == "":
		return i.name, false
	case name != i.name:
		return name, false
	}
	_, port, named := strings.Cut(said, ":")
	return name, !named || port == strconv.Itoa(int(i.f.to.Port()))
}

// rewrite makes of a request from inside the one that goes out.
func (i *injection) rewrite(p *httputil.ProxyRequest) {
	in, out := p.In, p.Out
	scheme := "https"
	if i.bound.plain {
		scheme = "http"
	}
	out.URL = &url.URL{
		Scheme: scheme, Host: net.JoinHostPort(i.name, strconv.Itoa(int(i.f.to.Port()))),
		Path: in.URL.Path, RawPath: in.URL.RawPath, RawQuery: in.URL.RawQuery, ForceQuery: in.URL.ForceQuery,
	}
	out.Host = in.Host
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v := in.Header[h]; v != nil {
			out.Header[h] = v
		}
	}
	if i.bound.secret() {
		// What the answer says must be seen, and whole, and in no spelling that the program chooses.
		out.Header.Set("Accept-Encoding", "identity")
		for _, h := range []string{"Accept-Charset", "A-Im", "Range", "If-Range", "Sec-Websocket-Extensions"} {
			out.Header.Del(h)
		}
	}
	if !strings.EqualFold(out.Header.Get("Upgrade"), webSocket) {
		out.Header.Del("Upgrade") // the host may do without, and what it becomes is not known here
		out.Header.Del("Connection")
	}
	out.Trailer = nil // servers differ in what they take from there
	for _, secret := range i.bound.put(out.Header) {
		i.g.journal.use(secret, i.name)
	}
}

const webSocket = "websocket"

// RoundTrip makes a request to the host. What comes before its answer is masked here, the answer
// by modify.
func (i *injection) RoundTrip(r *http.Request) (*http.Response, error) {
	return i.via.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(_ int, h textproto.MIMEHeader) error { // before who passes it on
			if i.bound.secret() {
				i.maskHeader(http.Header(h))
			}
			return nil
		},
	})))
}

// values are those of all bound secrets that the sandbox has now.
func (i *injection) values() *deep.Set {
	if now := i.g.state.Load().keys; now != nil {
		return now.values
	}
	return i.bound.keys.values
}

// maskHeader masks values in fields, and deletes those with one in their names.
func (i *injection) maskHeader(h http.Header) {
	values := i.values()
	i.g.o.Share.look(func() {
		for name, lines := range h {
			if values.ContainsFold(name) {
				delete(h, name)
				continue
			}
			for n, line := range lines {
				lines[n] = values.String(line)
			}
		}
	})
}

// modify masks the secrets in an answer.
func (i *injection) modify(res *http.Response) error {
	res.Header.Del("Alt-Svc") // what goes there is not looked at
	if !i.bound.secret() {
		return nil
	}
	i.maskHeader(res.Header)
	if res.StatusCode == http.StatusSwitchingProtocols {
		rw, ok := res.Body.(io.ReadWriteCloser)
		if !ok || !strings.EqualFold(res.Header.Get("Upgrade"), webSocket) {
			return errEncoding
		}
		res.Body = &maskedConn{i.body(rw, rw, nil), rw}
		return nil
	}
	if res.Request.Method == http.MethodHead || res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusNotModified {
		return nil
	}
	if err := checkCharset(res.Header); err != nil {
		return err
	}
	from, err := decoded(res)
	if err != nil {
		return err
	}
	res.Body = i.body(from, res.Body, func() { i.maskHeader(res.Trailer) })
	return nil
}

func (i *injection) body(from io.Reader, under io.Closer, ended func()) *maskedBody {
	return newMaskedBody(i.values(), i.g.o.Share, i.g.o.Hold, from, under, ended)
}

// failed answers a request that was not.
func (i *injection) failed(w http.ResponseWriter, r *http.Request, err error) {
	var bad *tls.CertificateVerificationError
	switch {
	case r.Context().Err() != nil:
		panic(http.ErrAbortHandler)
	case errors.As(err, &bad):
		i.refuse(w, http.StatusBadGateway, i.name, policy.Certificate)
	case errors.Is(err, errEncoding):
		i.refuse(w, http.StatusBadGateway, i.name, policy.Encoding)
	default:
		i.say(w, http.StatusBadGateway, fmt.Sprintf("%s did not answer the request: %v", i.name, err))
	}
}

// refuse answers a request with why it is refused, and notes it.
func (i *injection) refuse(w http.ResponseWriter, status int, host string, why policy.Reason) {
	w.Header().Set("X-Sandpit-Refused", "network")
	i.say(w, status, why.Explain(host))
	i.note(host, why)
}

func (i *injection) say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "sandpit: "+i.values().String(text)+"\n")
}

func (i *injection) note(host string, why policy.Reason) {
	e := i.f.entry("tcp")
	e.Name = host
	i.g.refuse(e, why)
}
