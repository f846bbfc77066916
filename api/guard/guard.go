// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/audit"
	"sandpit.dev/fault"
	"sandpit.dev/internal/ratelimit"
	"sandpit.dev/trace"
)

// Checker turns a bearer token into a caller. It is called concurrently, once per request.
type Checker interface {
	// Admit returns the caller of a token, and a context that ends when the token is valid
	// no more, with the reason as its cause. The guard calls release at the end of the
	// request. A token that is not valid is fault.Unauthenticated.
	Admit(ctx context.Context, token string) (c access.Caller, valid context.Context, release func(), err error)
}

// Options configure a guard.
type Options struct {
	Tokens Checker // required
	// Sessions checks the cookies of people who are signed in; nil: nobody is.
	Sessions Checker
	// Hosts are names and addresses, without a port, under which the server is
	// reached, beside loopback ones and the address that a connection came in on.
	Hosts []string
	// Origins are web origins ("https://console.example.org") whose pages may
	// call the server, beside its own. Preflights of theirs need no token, and their
	// browsers let them read answers.
	Origins []string
	// MaxBody is the most bytes that a request's body may have, whatever the
	// coat allows; zero: 5 GiB.
	MaxBody int64
	// Stall is how long a client may send nothing of a body before the request is aborted; zero:
	// 30 s. Bytes that arrive earn back the time that they would take at Rate.
	Stall time.Duration
	// Rate is the least bytes in a second of a body, once Stall is used up by waiting;
	// zero: 4096.
	Rate int64
	// Resources are paths that clients get tokens for from somewhere else: answers without a valid token
	// say where that is told, at [MetadataPath] followed by the path, or by none for all others. Who
	// makes the guard serves it. Nil: there is nowhere.
	Resources []string
	// Requests bounds the requests that begin, by token and by project.
	Requests Rates
	Logger   *slog.Logger // nil: discard
	// Observe is called for every finished request. The route is the pattern that matched ("GET
	// /v1/sandboxes/{id}"), or "" if none did: never a path that a caller chose. It may be nil.
	Observe func(Observation)
	// Record is called for every finished request, for the audit log. It may be nil.
	Record func(context.Context, *audit.Operation, audit.Answer)
	// Project returns fault.NotFound for a project that there is not, where the server's own
	// administrator names one by ProjectHeader; nil: any is.
	Project func(ctx context.Context, name string) error
	// Tracer makes a span of each request with a valid token; nil: none.
	Tracer *trace.Tracer
	// LogAll reports whether the log has every request, and not only at its level debug; nil: no.
	LogAll func() bool
}

// Observation is one finished request, for metrics.
type Observation struct {
	Method, Route string
	Status        int
	Duration      time.Duration
	BytesOut      int64
}

// Bounds of bodies if the options have none.
const (
	DefaultMaxBody = 5 << 30 // bytes
	DefaultStall   = 30 * time.Second
	DefaultRate    = 4 << 10 // bytes in a second
)

// Guard wraps handlers. It is safe for concurrent use.
type Guard struct {
	tokens   Checker
	sessions Checker
	hosts    hosts
	cross    *http.CrossOriginProtection
	origins  map[string]bool
	maxBody  int64
	stall    time.Duration
	rate     int64
	log      *slog.Logger
	observe  func(Observation)
	logAll   func() bool
	record   func(context.Context, *audit.Operation, audit.Answer)
	project  func(context.Context, string) error
	tracer   *trace.Tracer

	resources []string
	strangers *strangers
	rates     rates
	guesses   *ratelimit.Limiter[netip.Prefix]
}

// New returns a guard. An invalid origin is fault.Invalid.
func New(o Options) (*Guard, error) {
	if o.Tokens == nil {
		return nil, fault.InvalidField("tokens", "is missing")
	}
	g := &Guard{
		tokens: o.Tokens, sessions: o.Sessions, hosts: newHosts(o.Hosts), cross: http.NewCrossOriginProtection(),
		origins: make(map[string]bool), maxBody: o.MaxBody, stall: o.Stall, rate: o.Rate, log: o.Logger, observe: o.Observe, logAll: o.LogAll, record: o.Record, project: o.Project, tracer: o.Tracer,
		resources: o.Resources, strangers: newStrangers(), guesses: newGuesses(), rates: newRates(o.Requests),
	}
	for _, origin := range o.Origins {
		origin, err := canonicalOrigin(origin)
		if err != nil {
			return nil, err
		}
		if err := g.cross.AddTrustedOrigin(origin); err != nil {
			return nil, fault.InvalidField("origins", "%q is not a valid origin: %v", origin, err)
		}
		g.origins[origin] = true
	}
	if g.maxBody <= 0 {
		g.maxBody = DefaultMaxBody
	}
	if g.stall <= 0 {
		g.stall = DefaultStall
	}
	if g.rate <= 0 {
		g.rate = DefaultRate
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	return g, nil
}

// Wrap is [Guard.Through] a door with a bearer token and errors as [Error] writes them. via is how the caller's
// events will say that it came ("rest", "mcp").
func (g *Guard) Wrap(via string, next http.Handler) http.Handler {
	return g.Through(Door{Via: via}, next)
}

// address returns the peer's address. A proxy's own is the proxy's: headers that anyone can send are not read.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return "" // a unix socket
	}
	return host
}

// While returns a copy of ctx that also ends when the token of a request is no longer valid, or did not come in time, with
// the reason as its cause. The guard has done so with each request's own context; While is for
// work that outlives that, such as an upgraded connection. The caller calls done.
func While(ctx, request context.Context) (_ context.Context, done func()) {
	p := passOf(request)
	if p == nil {
		return ctx, func() {}
	}
	valid := p.valid
	if valid == nil && p.introduction != nil {
		valid = p.introduction.over
	}
	if valid == nil || valid.Done() == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(valid, func() { cancel(context.Cause(valid)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// WrapOpen is Wrap without the token: for what anyone who reaches the server may read. [Caller]
// fails behind it.
func (g *Guard) WrapOpen(next http.Handler) http.Handler { return g.Open(Door{}, next) }

// Open is WrapOpen for a coat whose door says how it is told what is wrong.
func (g *Guard) Open(d Door, next http.Handler) http.Handler {
	return g.wrap(&d, func(r *http.Request) error {
		if navigates(r) { // a person followed a link, and the page that had it reads nothing
			return nil
		}
		return g.checkSite(r)
	}, func(w *response, r *http.Request) { next.ServeHTTP(w, r) })
}

// WrapLink is [Guard.WrapOpen] for what a signed link is the right to: pages of other sites
// may show it.
func (g *Guard) WrapLink(next http.Handler) http.Handler { return g.OpenLink(Door{}, next) }

// OpenLink is WrapLink for a coat whose door says how it is told what is wrong.
func (g *Guard) OpenLink(d Door, next http.Handler) http.Handler {
	return g.wrap(&d, func(*http.Request) error { return nil }, func(w *response, r *http.Request) { next.ServeHTTP(w, r) })
}

func (g *Guard) wrap(d *Door, checkSite func(*http.Request) error, next func(*response, *http.Request)) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		began := time.Now()
		p := &pass{id: requestID(r.Header.Get("X-Request-Id")), resources: g.resources, door: d}
		r = r.WithContext(audit.With(context.WithValue(r.Context(), passKey{}, p), &p.operation))
		w := &response{ResponseWriter: rw, pass: p}
		h := w.Header()
		h.Set("X-Request-Id", p.id)
		h.Set("X-Content-Type-Options", "nosniff")
		g.tellPage(h, r)
		defer g.finish(w, r, began)
		if r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody {
			b := &body{
				ReadCloser: http.MaxBytesReader(rw, r.Body, g.maxBody), ctl: http.NewResponseController(rw),
				stall: g.stall, rate: g.rate, patience: g.stall,
			}
			r.Body = b
			defer b.left()
		}
		if err := g.checkHost(r); err != nil {
			d.refuse(w, r, err)
			return
		}
		if err := cmp.Or(g.checkOrigin(r), checkSite(r)); err != nil {
			d.refuse(w, r, err)
			return
		}
		if g.preflight(r) {
			allowPage(w, r, d)
			return
		}
		if r.ContentLength > g.maxBody {
			d.refuse(w, r, TooLarge(g.maxBody))
			return
		}
		next(w, r)
	})
}

// Detach has serve called in a goroutine of its own once the handler of the request that ctx belongs to has returned, for a
// connection that was hijacked: while a handler runs, net/http keeps its buffers and its stack, some 20 KB. The request ends
// behind serve, and with it what belongs to it, such as the caller's right and the line in the log. Nothing can be answered
// any more by then. The goroutine of the handler calls it.
func Detach(ctx context.Context, serve func()) {
	if p := passOf(ctx); p != nil {
		p.detached = serve
		return
	}
	serve()
}

// pass is the guard's state of one request. It belongs to the request's goroutine.
type pass struct {
	id     string
	caller access.Caller
	known  bool
	valid  context.Context // ends with the caller's token; nil without a caller
	err    error           // what [Error] answered, for the log
	asked  bool            // and it is what was asked for, see [NotYet]
	span   *trace.Span     // nil: there is none

	operation audit.Operation // that it asks for, for the audit log

	resources []string // see [Options]

	door         *Door
	presented    bool          // a token was, valid or not
	introduction *introduction // nil: none is waited for

	detached func()   // see [Detach]; nil: nothing is
	ends     []func() // called when the request ends, the last first
}

func (p *pass) atEnd(f func()) { p.ends = append(p.ends, f) }

func (p *pass) end() {
	for _, f := range slices.Backward(p.ends) {
		f()
	}
}

type passKey struct{}

func passOf(ctx context.Context) *pass {
	p, _ := ctx.Value(passKey{}).(*pass)
	return p
}

// Caller returns who makes the request that ctx belongs to. If the request did not pass a guard
// it is fault.Unauthenticated: a coat that was mounted without its guard refuses every request.
func Caller(ctx context.Context) (access.Caller, error) {
	if p := passOf(ctx); p != nil && p.known {
		return p.caller, nil
	}
	return access.Caller{}, fault.New(fault.Unauthenticated, "there is no caller")
}

// RequestID returns the id of the request that ctx belongs to, or "".
func RequestID(ctx context.Context) string {
	if p := passOf(ctx); p != nil {
		return p.id
	}
	return ""
}
