// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Sandboxes is what the proxy needs of the sandboxes' owner. Its methods check the caller's
// rights, and are called concurrently.
type Sandboxes interface {
	// ReachPreview is asked before each request: may the caller, is there such
	// a sandbox, and is it up.
	ReachPreview(ctx context.Context, c access.Caller, id string) error
	// PreviewOpened is called when a link is followed. It may be called again for the same link.
	PreviewOpened(ctx context.Context, c access.Caller, id, link string, port int) error
	// SeePort returns how a port is shown to whoever asks, and a context that ends when that is changed. The proxy
	// calls release at the end of the request. A sandbox that there is not shows nothing.
	SeePort(ctx context.Context, id string, port int) (s Seen, valid context.Context, release func(), err error)
	// AdmitLink returns what a link that is on record grants, and a context that ends when it is revoked. The
	// proxy calls release at the end of the request. One that is good no more is fault.Unauthenticated.
	AdmitLink(ctx context.Context, link string) (g Grant, valid context.Context, release func(), err error)
}

// Seen is how a port is shown.
type Seen struct {
	Project string
	Public  bool   // everyone may see it, by its host name
	Host    string // that the program sees: "" the one that was asked, "localhost" with its port, or a name
	Key     string // of the sandbox's own token, see [Links.SandboxToken]; "": it has none
}

// Tokens turns a token of the API into a caller; an invalid one is fault.Unauthenticated.
type Tokens interface {
	Check(ctx context.Context, token string) (access.Caller, error)
	// Ours reports whether a text has the form of a token that the server makes, or that its operator named, valid or
	// not. No program is shown one: else it could tell which of its guesses are right.
	Ours(token string) bool
	// Admit is Check with a context that ends when the token is valid no more. The proxy
	// calls release at the end of the request.
	Admit(ctx context.Context, token string) (c access.Caller, valid context.Context, release func(), err error)
}

// Options configure a proxy. The first five are required.
type Options struct {
	Links     *Links
	Sandboxes Sandboxes
	Tokens    Tokens
	// Dial connects to a port of a sandbox.
	Dial func(ctx context.Context, c access.Caller, id string, port int) (net.Conn, error)
	// Problem makes the answer to a program whose request failed, as
	// application/problem+json. A status of 0 means that of the error.
	Problem func(err error, status int) (int, []byte)
	// Guessed is told of a request whose token of the API is not valid, and returns the error to answer
	// with; nil: err is.
	Guessed func(w http.ResponseWriter, r *http.Request, err error) error
	// Framers may show previews in frames.
	Framers Framers
	// Idle is how long nothing may move on a connection; zero: 15 min.
	Idle time.Duration
	// Stall is how long a client may send nothing of a body, or take nothing of an
	// answer; zero: 1 min.
	Stall  time.Duration
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: discard
}

// Proxy is the handler of previews. It is safe for concurrent use.
type Proxy struct {
	links     *Links
	sandboxes Sandboxes
	tokens    Tokens
	dial      func(ctx context.Context, c access.Caller, id string, port int) (net.Conn, error)
	problem   func(err error, status int) (int, []byte)
	guessed   func(http.ResponseWriter, *http.Request, error) error
	consoles  []string // hosts of the server's pages that show previews in frames
	origins   []string // others that do
	idle      time.Duration
	stall     time.Duration
	now       func() time.Time
	log       *slog.Logger
	seen      seen
	transport *http.Transport
	reverse   *httputil.ReverseProxy
}

const (
	defaultIdle  = 15 * time.Minute
	defaultStall = time.Minute
	// keepConn is how long a connection to a program is kept for the next request.
	keepConn = 10 * time.Second
	maxKept  = 16        // of one port
	maxHead  = 256 << 10 // bytes of a program's answer before its body
)

// New returns a proxy. It starts nothing.
func New(o Options) (*Proxy, error) {
	if o.Links == nil || o.Sandboxes == nil || o.Tokens == nil || o.Dial == nil || o.Problem == nil {
		return nil, fault.New(fault.Internal, "preview.New needs links, sandboxes, tokens, a way to dial and one to fail")
	}
	p := &Proxy{
		links: o.Links, sandboxes: o.Sandboxes, tokens: o.Tokens, dial: o.Dial, problem: o.Problem, guessed: o.Guessed,
		consoles: o.Framers.consoles(o.Links.domain), origins: o.Framers.Origins,
		idle: o.Idle, stall: o.Stall, now: o.Now, log: o.Logger,
	}
	if p.idle <= 0 {
		p.idle = defaultIdle
	}
	if p.stall <= 0 {
		p.stall = defaultStall
	}
	if p.now == nil {
		p.now = time.Now
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.transport = &http.Transport{
		DialContext:            p.connect,
		DisableCompression:     true, // an answer is what it is
		IdleConnTimeout:        keepConn,
		MaxIdleConnsPerHost:    maxKept,
		MaxIdleConns:           1024,
		MaxResponseHeaderBytes: maxHead,
		ExpectContinueTimeout:  time.Second,
	}
	p.reverse = &httputil.ReverseProxy{
		Rewrite: rewrite, Transport: p.transport, FlushInterval: -1, BufferPool: newBuffers(),
		ModifyResponse: p.modify, ErrorHandler: p.failed,
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	return p, nil
}

// Close closes connections that wait for a request. Requests go on.
func (p *Proxy) Close() { p.transport.CloseIdleConnections() }

// IsHost reports whether a Host header names a preview, whether or not it exists. Only the proxy
// may answer there.
func (p *Proxy) IsHost(hostport string) bool {
	_, ours, _ := p.links.byHost(hostport)
	return ours
}

// ServeHTTP answers for a preview's host, and under [Root] for all other hosts,
// which the caller has checked. It must see paths as they were sent.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest := r.URL.EscapedPath()
	at, ours, err := p.links.byHost(r.Host)
	if !ours {
		at, rest, err = p.links.byPath(rest)
	}
	if err == nil {
		err = p.serve(w, r, at, rest)
	}
	if err != nil {
		p.fail(w, r, err, at)
	}
}

// serve answers a request to a preview. rest is the program's path.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, at place, rest string) error {
	if r.Method == http.MethodConnect || rest != "" && rest[0] != '/' {
		return fault.New(fault.Malformed, "a preview is no proxy to elsewhere: %s %s is not served", sandbox.Clip(r.Method, 20), sandbox.Clip(r.RequestURI, 200))
	}
	if err := checkQuery(r, at); err != nil {
		return err
	}
	if err := checkWorker(r, at); err != nil {
		return err
	}
	if at.prefix != "" && opensPage(r) && at.link == "" {
		// To a browser a page has its own origin, where it can, and else at least a
		// path that its relative links work with.
		if host := p.links.host(r, at.sandbox, at.port); host != "" && navigates(r) {
			return p.redirect(w, r, host, rest, withToken(r.URL.RawQuery, at.token))
		}
		if rest == "" {
			return p.redirect(w, r, r.Host, at.prefix+"/", r.URL.RawQuery)
		}
	}
	v, host, end, err := p.visitorOf(r, &at)
	defer end.release()
	if err != nil {
		if v.guess && p.guessed != nil && fault.Is(err, fault.Unauthenticated) {
			err = p.guessed(w, r, err)
		}
		return err
	}
	if err := v.checkOrigin(r); err != nil {
		return err
	}
	if err := p.opened(r.Context(), v, at); err != nil {
		return err
	}
	if v.how == byQuery && opensPage(r) {
		if at.prefix != "" {
			token := queryToken(r.URL.RawQuery)
			if v.grant.Key != "" { // the path is for one port
				v.grant.Port = at.port
				token = p.links.sign(ofSandbox, v.grant)
			}
			return p.redirect(w, r, r.Host, Root+token+rest, withoutToken(r.URL.RawQuery))
		}
		http.SetCookie(w, p.cookie(r, v, at))
		return p.redirect(w, r, r.Host, rest, withoutToken(r.URL.RawQuery))
	}
	if preflights(r, at) {
		allow(w, r)
		return nil
	}
	if err := p.sandboxes.ReachPreview(r.Context(), v.caller, at.sandbox); err != nil {
		return err
	}
	if rest == "" {
		rest = "/"
	}
	s := newSteady(w, r, p)
	defer s.done()
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), passKey{}, &pass{at: at, rest: rest, v: v, host: host, asked: r.Host}))
	defer cancel()
	for _, valid := range end.valid {
		defer context.AfterFunc(valid, cancel)()
	}
	if !v.grant.Expires.IsZero() { // what streams or is upgraded ends with the right to it
		over := time.AfterFunc(v.grant.Expires.Sub(p.now()), cancel)
		defer over.Stop()
	}
	if v.token != "" {
		_, valid, release, err := p.tokens.Admit(ctx, v.token)
		if err != nil {
			return err
		}
		defer release()
		defer context.AfterFunc(valid, cancel)()
	}
	p.reverse.ServeHTTP(s, r.WithContext(ctx))
	return nil
}

// redirect sends a browser elsewhere. The address is absolute: a path alone that
// begins with two slashes would name a host.
func (p *Proxy) redirect(w http.ResponseWriter, r *http.Request, host, path, query string) error {
	if path == "" {
		path = "/"
	}
	if query != "" {
		query = "?" + query
	}
	h := w.Header()
	h.Set("Location", scheme(r)+"://"+host+path+query)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusFound)
	return nil
}

// pass is the proxy's state of one request.
type pass struct {
	at   place
	rest string
	v    visitor
	host string // that the program sees; "": the one that was asked

	asked string
}

type passKey struct{}

func passOf(ctx context.Context) *pass {
	p, _ := ctx.Value(passKey{}).(*pass)
	return p
}

// dialError is an error of connecting, which is shown as it is.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// connect makes a connection to the program of the request that ctx belongs to.
// The transport keeps connections by the address, so each port of each sandbox
// has its own.
func (p *Proxy) connect(ctx context.Context, _, address string) (net.Conn, error) {
	ps := passOf(ctx)
	if ps == nil || address != backend(ps.at)+":80" {
		return nil, fault.New(fault.Internal, "a connection to %s was asked for, not for its own request", address)
	}
	nc, err := p.dial(ctx, ps.v.caller, ps.at.sandbox, ps.at.port)
	if err != nil {
		return nil, dialError{err}
	}
	return &idleConn{Conn: nc, idle: p.idle}, nil
}

// failed answers a request that the program did not answer.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	at := passOf(r.Context()).at
	if r.Context().Err() != nil {
		err = r.Context().Err()
	} else if _, ok := errors.AsType[dialError](err); !ok {
		if body, ok := errors.AsType[*bodyError](err); ok {
			err = body.error
		} else {
			err = fault.Wrap(fault.Unavailable, err, "the program on port %d of the sandbox gave no answer in HTTP: %s", at.port, told(err)).
				WithRemedy("see whether the program runs, and what it says in its log")
		}
	}
	p.fail(w, r, err, at)
}

// told returns what of a transport's error may be shown.
func told(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "malformed HTTP"):
		return "what it says is not HTTP"
	case strings.Contains(text, "timeout"):
		return "it said nothing for too long"
	}
	return "it broke the connection off"
}
