// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

// Door is how the callers of one coat show who they are, and how they are told what is wrong. All else that a request
// passes is the guard's, and the same behind every door: its id, Host and Origin, the bounds of its body, what its token
// may do, how often it may ask, the log, the audit log and the measurements.
type Door struct {
	// Via is how the callers' events will say that they came ("rest", "mcp"). Required.
	Via string
	// Credentials are the places where a token may stand; nil: [Bearer] alone. A request with tokens in two
	// of them is refused. What comes in another place than [Bearer] is taken out of the request before the coat has it.
	Credentials []Credential
	// Error answers with an error, also of what the guard refuses; nil: [Error]. One that writes another body does so
	// by [ErrorAs], which has the status and the headers.
	Error func(http.ResponseWriter, *http.Request, error)
}

// Credential is a place where a token may stand in a request.
type Credential struct {
	place  place
	name   string
	narrow func(access.Caller) bool
	below  string // of inCookie: the path
}

type place int

const (
	inBearer place = iota + 1
	inHeader
	inQuery
	inMessage
	inCookie
)

// Bearer is the header Authorization: Bearer TOKEN.
func Bearer() Credential { return Credential{place: inBearer} }

// InHeader is a header whose whole value is a token, for wires that have one of their own.
func InHeader(name string) Credential {
	return Credential{place: inHeader, name: textproto.CanonicalMIMEHeaderKey(name)}
}

// InQuery is a parameter of the query. Addresses are kept by browsers, logs and proxies, so that it is for tokens alone of
// which little can be lost: narrow reports whether a caller's is one, such as that of a single sandbox. Any
// other that comes so is refused, valid or not, by the same words.
func InQuery(name string, narrow func(access.Caller) bool) Credential {
	return Credential{place: inQuery, name: name, narrow: narrow}
}

// InSession is the cookie of a person who is signed in, checked by the Sessions of the [Options], in requests below a
// path. A browser sends it along with whatever any page asks for, so it counts only where no other credential is, and only
// for what a script of the server's own page asks for by itself, see [Guard.Through].
func InSession(below string) Credential {
	return Credential{place: inCookie, name: access.SessionCookie, below: below}
}

// FirstMessage is the first message of a WebSocket: pages cannot send headers with one. A request for a WebSocket without
// any token passes then, without a caller; its coat reads the message and calls [Introduce]. The request's context
// ends when that was not done in time, and [Caller] fails until it was.
func FirstMessage() Credential { return Credential{place: inMessage} }

// Bounds of a first message with a token.
const (
	// MaxFirstMessage is the most bytes that a coat reads of one.
	MaxFirstMessage = 2 * maxToken
	introductions   = 10 * time.Second // the time for one
)

// Check returns an error if a door lets nobody in as it is written.
func (d *Door) Check() error {
	if d.Via == "" {
		return fault.New(fault.Internal, "a door needs the name of its coat")
	}
	type where struct {
		place place
		name  string
	}
	seen := make(map[where]bool)
	for _, c := range d.Credentials {
		switch {
		case c.place == 0:
			return fault.New(fault.Internal, "the door of %s has a credential without a place", d.Via)
		case (c.place == inHeader || c.place == inQuery) && c.name == "":
			return fault.New(fault.Internal, "the door of %s has a credential without a name", d.Via)
		case c.place == inHeader && slices.Contains(notCredentials(), c.name):
			return fault.New(fault.Internal, "the door of %s has its credential in %s, which others send or read", d.Via, c.name)
		case c.place == inCookie && !strings.HasPrefix(c.below, "/"):
			return fault.New(fault.Internal, "the door of %s takes a session on no path", d.Via)
		case c.place == inQuery && c.narrow == nil:
			return fault.New(fault.Internal, "the door of %s takes any token from a query", d.Via)
		case seen[where{c.place, c.name}]:
			return fault.New(fault.Internal, "the door of %s has a credential twice", d.Via)
		}
		seen[where{c.place, c.name}] = true
	}
	return nil
}

// notCredentials are headers that browsers send by themselves, or that mean something to who is on the way.
func notCredentials() []string {
	return []string{"Authorization", "Connection", "Content-Length", "Content-Type", "Cookie", "Forwarded", "Host", "Origin", "Referer", "Transfer-Encoding", "Upgrade", "X-Request-Id", ProjectHeader}
}

func (d *Door) credentials() []Credential {
	if len(d.Credentials) == 0 {
		return []Credential{Bearer()}
	}
	return d.Credentials
}

func (d *Door) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if d == nil || d.Error == nil {
		Error(w, r, err)
		return
	}
	d.Error(w, r, err)
}

// remedy says where a token belongs.
func (d *Door) remedy() string {
	var ways []string
	bearer := true // and nothing else that a client could send
	for _, c := range d.credentials() {
		bearer = bearer && (c.place == inBearer || c.place == inCookie)
		switch c.place {
		case inBearer:
			ways = append(ways, "the header Authorization: Bearer TOKEN")
		case inHeader:
			ways = append(ways, "the header "+c.name+": TOKEN")
		case inMessage:
			ways = append(ways, "the first message of a WebSocket")
		}
	}
	if bearer {
		return "send the header Authorization: Bearer TOKEN, for which commands of sandpit take SANDPIT_TOKEN; sandpit token create makes a token"
	}
	if len(ways) == 0 {
		return "ask for an address that has a token"
	}
	return "send " + strings.Join(ways, ", or ") + "; sandpit token create makes a token"
}

// Through passes only requests with a valid token on to next, which gets the caller by [Caller]. A door that
// [Door.Check] refuses lets nobody in.
func (g *Guard) Through(d Door, next http.Handler) http.Handler {
	wrong := d.Check()
	return g.wrap(&d, g.checkSite, func(w *response, r *http.Request) {
		if wrong != nil {
			d.refuse(w, r, wrong)
			return
		}
		token, from, err := d.find(r)
		w.pass.presented = from.place != 0
		if err == nil && from.place == 0 {
			if d.waits(r) {
				g.await(w, r, &d, next)
				return
			}
			err = fault.New(fault.Unauthenticated, "the request has no token").WithRemedy("%s", d.remedy())
		}
		var caller access.Caller
		var valid context.Context
		release := func() {}
		if err == nil {
			if from.place == inCookie {
				err = ownScript(r)
			}
			if err == nil {
				caller, valid, release, err = g.admit(w, r, &d, token, from)
			}
		}
		if err == nil && from.narrow != nil && !from.narrow(caller) {
			release()
			err = g.Guessed(w, r, notInQuery(&d))
		}
		if err != nil {
			if from.narrow != nil && fault.Is(err, fault.Unauthenticated) {
				err = notInQuery(&d)
			}
			if from.place == inCookie && fault.Is(err, fault.Unauthenticated) {
				http.SetCookie(w, EndedCookie())
			}
			w.pass.operation.Caller = access.Caller{Via: d.Via, RequestID: w.pass.id, Address: address(r)}
			d.refuse(w, r, err)
			return
		}
		w.pass.atEnd(release)
		r = without(r, from)
		if err := g.enter(w.pass, r, &d, caller, valid); err != nil {
			d.refuse(w, r, err)
			return
		}
		if g.tracer != nil {
			r = g.traced(w.pass, r)
		}
		if err := g.rates.admit(w.pass.caller, time.Now()); err != nil {
			d.refuse(w, r, err)
			return
		}
		if valid.Done() == nil {
			next.ServeHTTP(w, r)
			return
		}
		ctx, done := While(r.Context(), r.Context())
		w.pass.atEnd(done)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// notInQuery returns the error of a token in a query that is not valid, or more than one for a query.
func notInQuery(d *Door) error {
	return fault.New(fault.Unauthenticated, "the token in the query is not valid, or not one for queries: those are of a single sandbox").
		WithRemedy("%s", d.remedy())
}

// enter records who the caller of a request is, with a token that is valid.
func (g *Guard) enter(p *pass, r *http.Request, d *Door, c access.Caller, valid context.Context) error {
	Proven(r.Context())
	c.Via, c.RequestID, c.Address = d.Via, p.id, address(r)
	if c.Session != "" {
		c.Via = viaSession
	}
	if err := g.inProject(&c, r); err != nil {
		p.caller, p.known = c, true // for the log
		return err
	}
	p.caller, p.known, p.valid = c, true, valid
	p.operation.Caller = c
	return nil
}

// find returns the token of a request and the place where it stands; none where there is none.
func (d *Door) find(r *http.Request) (token string, from Credential, _ error) {
	wrong := func(format string, args ...any) error {
		return fault.New(fault.Unauthenticated, format, args...).WithRemedy("%s", d.remedy())
	}
	for _, c := range d.credentials() {
		var values []string
		what := ""
		switch c.place {
		case inBearer:
			values, what = r.Header["Authorization"], "Authorization headers"
		case inHeader:
			values, what = r.Header[c.name], c.name+" headers"
		case inQuery:
			if !strings.Contains(r.URL.RawQuery, "=") {
				continue
			}
			values, what = r.URL.Query()[c.name], c.name+" parameters" // what cannot be read is for the coat to say
		case inCookie:
			continue // see below: it comes by itself, and beside a token it counts for nothing
		}
		switch {
		case len(values) == 0:
			continue
		case from.place != 0:
			return "", c, wrong("the request has more than one token")
		}
		from, token = c, strings.Trim(values[0], " ")
		if len(values) > 1 {
			return "", c, wrong("the request has %d %s", len(values), what)
		}
		if c.place == inBearer {
			scheme, rest, _ := strings.Cut(values[0], " ")
			// What was sent is not repeated: it may be a secret of another server.
			if token = strings.Trim(rest, " "); !strings.EqualFold(scheme, "Bearer") || token == "" {
				return "", c, wrong("the Authorization header is not of the form Bearer TOKEN")
			}
		}
		if token == "" {
			return "", c, wrong("the token is empty")
		}
	}
	if from.place == 0 {
		return d.findCookie(r)
	}
	return token, from, nil
}

// without returns a request without a token that stands where others may read it: coats log, hand on and answer
// with what a request has.
func without(r *http.Request, c Credential) *http.Request {
	if c.place != inHeader && c.place != inQuery {
		return r
	}
	out := r.WithContext(r.Context())
	if c.place == inHeader {
		out.Header = r.Header.Clone()
		out.Header.Del(c.name)
		return out
	}
	u := *r.URL
	query := u.Query()
	query.Del(c.name)
	u.RawQuery = query.Encode()
	out.URL, out.RequestURI = &u, u.RequestURI()
	return out
}

// waits reports whether a request may show its token later.
func (d *Door) waits(r *http.Request) bool {
	return slices.ContainsFunc(d.Credentials, func(c Credential) bool { return c.place == inMessage }) &&
		r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// introduction is what is left to do for a WebSocket whose first message has the token.
type introduction struct {
	guard *Guard
	door  *Door
	w     http.ResponseWriter
	r     *http.Request
	timer *time.Timer
	over  context.Context // ends when it is too late
}

// late is the error of a message that did not come in time.
func (d *Door) late() error {
	return fault.New(fault.Unauthenticated, "no message with a token came in %v", introductions).WithRemedy("%s", d.remedy())
}

// await serves a WebSocket that has yet to say who it is.
func (g *Guard) await(w *response, r *http.Request, d *Door, next http.Handler) {
	w.pass.operation.Caller = access.Caller{Via: d.Via, RequestID: w.pass.id, Address: address(r)}
	over, end := context.WithCancelCause(context.Background())
	i := &introduction{guard: g, door: d, w: w, r: r, over: over, timer: time.AfterFunc(introductions, func() { end(d.late()) })}
	w.pass.introduction = i
	w.pass.atEnd(func() { i.timer.Stop() })
	ctx, done := While(r.Context(), r.Context())
	w.pass.atEnd(done)
	next.ServeHTTP(w, r.WithContext(ctx))
}

// Introduce checks the token of a WebSocket's first message, for a coat whose door has [FirstMessage]. Behind it [Caller]
// returns the caller, and the context that it returns ends with the token's right, too; the caller calls done. An error, of
// which the coat tells its client, ends the connection: there is no second try.
func Introduce(ctx context.Context, token string) (_ context.Context, done func(), _ error) {
	p := passOf(ctx)
	if p == nil || p.introduction == nil || p.presented {
		return nil, nil, fault.New(fault.Unauthenticated, "this connection cannot be introduced, or was before")
	}
	i := p.introduction
	p.presented = true
	if !i.timer.Stop() {
		return nil, nil, i.door.late()
	}
	caller, valid, release, err := i.guard.admit(i.w, i.r, i.door, token, FirstMessage())
	if err != nil {
		p.err = err
		return nil, nil, err
	}
	p.atEnd(release)
	if err = i.guard.enter(p, i.r, i.door, caller, valid); err == nil {
		err = i.guard.rates.admit(p.caller, time.Now())
	}
	if err != nil {
		p.err = err
		return nil, nil, err
	}
	ctx, done = While(ctx, ctx)
	return ctx, done, nil
}

// admit returns the caller of a token.
func (g *Guard) admit(w http.ResponseWriter, r *http.Request, d *Door, token string, from Credential) (access.Caller, context.Context, func(), error) {
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return access.Caller{}, nil, nil, fault.New(fault.Unauthenticated, "the token has %d bytes or odd characters; no token of this server does", len(token)).
			WithRemedy("%s", d.remedy())
	}
	checker := g.tokens
	if from.place == inCookie {
		if checker = g.sessions; checker == nil {
			return access.Caller{}, nil, nil, fault.New(fault.Unauthenticated, "nobody is signed in at this server").WithRemedy("%s", d.remedy())
		}
	}
	c, valid, release, err := checker.Admit(r.Context(), token)
	if fault.Is(err, fault.Unauthenticated) {
		err = g.Guessed(w, r, err)
	}
	return c, valid, release, err
}

// maxToken is longer than any valid token: those of external issuers carry what they say.
const maxToken = 8 << 10
