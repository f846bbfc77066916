// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

// Names under which credentials come.
const (
	queryName  = "sandpit_token"
	headerName = "X-Sandpit-Token"
	cookieName = "sandpit_preview"

	// As Daytona's clients have them, and Orkestr's.
	daytonaQuery  = "DAYTONA_SANDBOX_AUTH_KEY"
	daytonaHeader = "X-Daytona-Preview-Token"
	orkestrQuery  = "ork_preview_token"
	orkestrHeader = "X-Orkestr-Preview-Token"
)

// headerNames are the headers that have a token, and queryNames the parameters.
func headerNames() []string { return []string{headerName, daytonaHeader, orkestrHeader} }
func queryNames() []string  { return []string{queryName, daytonaQuery, orkestrQuery} }

// visitor is the sender of a request, and the credential that let it in.
type visitor struct {
	caller access.Caller
	grant  Grant // of a link or a cookie; zero for a token of the API
	how    means
	token  string // of the API; empty for a link or a cookie
	bearer bool   // the Authorization header is ours, or looks as if, whether it was needed or not
	guess  bool   // no credential held, and one of them was to be a token of the API
}

// means is what a credential came in.
type means int

const (
	byQuery means = iota
	byHeader
	byBearer
	byNobody // everyone may see it
	byName   // the host itself is a link's
	inPath   // the path has a link's token
	byCookie // a browser sends it by itself, whatever page made the request
)

// authenticate finds out who makes a request: by the query's link, the token of our
// header, a bearer token, or a cookie. If none holds, the error is that of the first that
// was tried.
func (p *Proxy) authenticate(r *http.Request, at place) (visitor, error) {
	var first error
	guess := false
	try := func(how means, token string) (visitor, bool) {
		v, err := p.admit(r.Context(), how, token, at)
		if err == nil {
			return v, true
		}
		if first == nil || !fault.Is(err, fault.Unauthenticated) {
			first = err
		}
		guess = guess || how != byCookie && !strings.HasPrefix(token, tokenPrefix)
		return v, false
	}
	bearer := visitor{}
	if token := bearerToken(r); token != "" {
		bearer, _ = try(byBearer, token)
	}
	ours := bearer.bearer || p.ours(r)
	if token := queryToken(r.URL.RawQuery); token != "" {
		if v, ok := try(byQuery, token); ok {
			v.bearer = ours
			return v, nil
		}
	}
	for _, name := range headerNames() {
		if token := r.Header.Get(name); token != "" {
			if v, ok := try(byHeader, token); ok {
				v.bearer = ours
				return v, nil
			}
		}
	}
	if bearer.bearer {
		return bearer, nil
	}
	if at.token != "" {
		if v, ok := try(inPath, at.token); ok {
			v.bearer = ours
			return v, nil
		}
	}
	for _, c := range r.CookiesNamed(cookieName) {
		// By path it would be the server's host that the browser has it for.
		if at.prefix != "" {
			break
		}
		if v, ok := try(byCookie, c.Value); ok {
			v.bearer = ours
			return v, nil
		}
	}
	if first == nil {
		first = fault.New(fault.Unauthenticated, "this preview is private").
			WithRemedy("open it by a link that sandpit preview %s %d prints, or send the header %s", at.sandbox, at.port, headerName)
	}
	return visitor{guess: guess}, first
}

// ends is what a request's right to a preview ends with.
type ends struct {
	valid    []context.Context
	releases []func()
}

func (e *ends) add(valid context.Context, release func()) {
	e.valid, e.releases = append(e.valid, valid), append(e.releases, release)
}

func (e *ends) release() {
	for _, f := range e.releases {
		f()
	}
}

// visitorOf is authenticate for every kind of host. Of that of a link which is on record it says in at what sandbox it
// is for. host is what the program is to see; end is released in any case.
func (p *Proxy) visitorOf(r *http.Request, at *place) (v visitor, host string, end ends, err error) {
	if at.link != "" {
		g, valid, release, err := p.sandboxes.AdmitLink(r.Context(), at.link)
		if err != nil {
			return v, "", end, err
		}
		end.add(valid, release)
		if g.Port != at.port {
			return v, "", end, fault.New(fault.Unauthenticated, "the link is for another preview").WithRemedy("ask whoever gave you the link for a new one")
		}
		at.sandbox = g.Sandbox
		v = p.unasked(r, g.Project, linkActor)
		v.grant, v.how = g, byName
	}
	seen, valid, release, err := p.sandboxes.SeePort(r.Context(), at.sandbox, at.port)
	if err != nil {
		return v, "", end, err
	}
	host = seen.Host
	if host == loopbackDomain {
		host += ":" + strconv.Itoa(at.port)
	}
	switch {
	case at.link != "":
		release()
	case seen.Public && at.prefix == "":
		// By path pages have the server's own address: what is public there were a stranger's page below it.
		end.add(valid, release)
		v = p.unasked(r, seen.Project, PublicActor)
		v.how = byNobody
	default:
		at.key = seen.Key
		if v, err = p.authenticate(r, *at); err == nil && v.grant.Key != "" {
			end.add(valid, release) // it may be taken back
		} else {
			release()
		}
	}
	return v, host, end, err
}

// unasked is a visitor who needs no credential. A token of ours is not for the program to see all the same.
func (p *Proxy) unasked(r *http.Request, project, actor string) visitor {
	v := visitor{caller: access.Caller{Project: project, Actor: actor, Via: via, Scopes: []access.Scope{access.SandboxesWrite}}}
	if token := bearerToken(r); token != "" && !p.ours(r) { // another issuer's, which nobody guesses
		_, err := p.tokens.Check(r.Context(), token)
		v.bearer = !fault.Is(err, fault.Unauthenticated)
	} else {
		v.bearer = token != ""
	}
	return v
}

// ours reports whether the bearer token of a request has the form of one of the server's, valid or not.
func (p *Proxy) ours(r *http.Request) bool {
	token := bearerToken(r)
	return token != "" && p.tokens.Ours(token)
}

// admit checks one credential.
func (p *Proxy) admit(ctx context.Context, how means, token string, at place) (visitor, error) {
	if len(token) > maxAPIToken {
		return visitor{}, fault.New(fault.Unauthenticated, "the token is not valid")
	}
	if how == byCookie || strings.HasPrefix(token, tokenPrefix) {
		g, err := p.links.read(kindOf(how, token), token, at, p.now())
		if err != nil {
			return visitor{}, err
		}
		c := access.Caller{Project: g.Project, Actor: linkActor, Via: via, Scopes: []access.Scope{access.SandboxesWrite}}
		return visitor{caller: c, grant: g, how: how, bearer: how == byBearer}, nil
	}
	c, err := p.tokens.Check(ctx, token)
	if err != nil {
		return visitor{}, err
	}
	if err := c.Inside().Require(access.SandboxesPorts); err != nil {
		return visitor{}, err
	}
	c.Via = via
	return visitor{caller: c, how: how, token: token, bearer: how == byBearer}, nil
}

// kindOf returns the kind that a token has to be of. Whether it is, [Links.read] tells.
func kindOf(how means, token string) string {
	sandboxes := strings.HasPrefix(token, tokenPrefix+ofSandbox) // or of its cookie
	switch {
	case how == byCookie && sandboxes:
		return ofItsCookie
	case how == byCookie:
		return ofCookie
	case sandboxes:
		return ofSandbox
	}
	return ofLink
}

// checkQuery refuses a token of the API in an address, whatever else the request
// has. The program's pages can read the address that they are opened by, and a
// service worker of theirs that of each later visit: a link is good for that
// program alone, a token of the API for all of its project.
func checkQuery(r *http.Request, at place) error {
	token := queryToken(r.URL.RawQuery)
	if token == "" || strings.HasPrefix(token, tokenPrefix) {
		return nil
	}
	return fault.New(fault.Unauthenticated, "an address takes only the token of a link, which begins with %s", tokenPrefix).
		WithRemedy("make a link with sandpit preview %s %d, or send the token in the header %s", at.sandbox, at.port, headerName)
}

// How events name previews and their visitors.
const (
	via       = "preview"
	linkActor = "preview-link"
	// PublicActor is a visitor who showed nothing, since the preview is public.
	PublicActor = "public-preview"
)

// bearerToken is the token of an Authorization header that may be ours.
func bearerToken(r *http.Request) string {
	if len(r.Header["Authorization"]) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.Trim(token, " ")
}

// checkOrigin refuses what pages of other origins make a browser send: with a
// cookie of ours, but without its user's will. Following a link is one's will.
func (v visitor) checkOrigin(r *http.Request) error {
	if v.how != byCookie {
		return nil
	}
	refused := fault.New(fault.Denied, "a page of another origin may not use this preview").
		WithRemedy("have the page call it with the header %s", headerName)
	site := r.Header.Get("Sec-Fetch-Site")
	// A page that sends no referrer posts to its own origin as "null".
	own := func(origin string) bool {
		return ownOrigin(origin, r.Host) || origin == "null" && site == "same-origin"
	}
	if origins := r.Header["Origin"]; len(origins) > 0 && (len(origins) > 1 || !own(origins[0])) {
		return refused
	}
	switch {
	case site == "same-origin", site == "none":
		return nil
	case navigates(r) && r.Header.Get("Sec-Fetch-Dest") == "document":
		return nil
	case site == "":
		// To plain http, but for localhost, no browser says which site's page it is. Forms and
		// sockets have an Origin, a page that is opened asks for https, which no script can add
		// to a request to another origin, and all else has the Referer of its own page.
		if len(r.Header["Origin"]) > 0 || asksForHTTPS(r) || ownReferer(r) {
			return nil
		}
		return refused.WithRemedy("have the page call it with the header %s; if it is the program's own page, serve previews by https, or have the page send a referrer to its own origin", headerName)
	}
	return refused
}

// unnamed reports whether a browser may have made the request that does not say for which site's page.
func (v visitor) unnamed(r *http.Request) bool {
	return v.how == byCookie && r.Header.Get("Sec-Fetch-Site") == ""
}

// asksForHTTPS reports whether the request is one by which a browser opens a page or a frame.
func asksForHTTPS(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Upgrade-Insecure-Requests") == "1"
}

// ownReferer reports whether the page that makes the request is of the preview itself.
func ownReferer(r *http.Request) bool {
	all := r.Header["Referer"]
	if len(all) != 1 {
		return false
	}
	u, err := url.Parse(all[0])
	return err == nil && ownOrigin(u.Scheme+"://"+u.Host, r.Host)
}

func ownOrigin(origin, host string) bool {
	scheme, rest, ok := strings.Cut(origin, "://")
	return ok && (scheme == "http" || scheme == "https") && strings.EqualFold(rest, host)
}

// navigates reports whether a browser opens a page by the request.
func navigates(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// opensPage is navigates, as far as browsers without Sec-Fetch-Mode let it be seen.
func opensPage(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Mode") != "" {
		return navigates(r)
	}
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Upgrade") == "" &&
		strings.Contains(r.Header.Get("Accept"), "text/html")
}

// cookieLife is how long a browser stays in that has shown a token without an end.
const cookieLife = 12 * time.Hour

// cookie is what a browser gets for a token: good for one preview, and no longer
// than the token.
func (p *Proxy) cookie(r *http.Request, v visitor, at place) *http.Cookie {
	kind, g := ofCookie, v.grant
	if g.Key != "" {
		kind, g.Port, g.Expires = ofItsCookie, at.port, p.now().Add(cookieLife).Truncate(time.Second)
	}
	return &http.Cookie{
		Name: cookieName, Value: p.links.sign(kind, g), Path: "/", MaxAge: max(1, int(g.Expires.Sub(p.now())/time.Second)),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: scheme(r) == "https",
	}
}

// opened records the first time that a link is followed.
func (p *Proxy) opened(ctx context.Context, v visitor, at place) error {
	if v.how == byCookie || v.grant.Link == "" || p.seen.has(v.grant.Link) {
		return nil
	}
	if err := p.sandboxes.PreviewOpened(ctx, v.caller, at.sandbox, v.grant.Link, at.port); err != nil {
		return err
	}
	p.seen.add(v.grant.Link)
	return nil
}
