// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"strconv"
	"strings"

	"sandpit.dev/fault"
)

// traced begins the span of a request whose caller is known: strangers make none. It is of the caller's trace, where there is one.
// What a path, a query or a body holds is not in it: they may be secrets.
func (g *Guard) traced(p *pass, r *http.Request) *http.Request {
	name, route := method(r.Method), r.Pattern
	if _, path, ok := strings.Cut(route, " "); ok {
		route = path
	}
	if route != "" {
		name += " " + route
	}
	ctx, s := g.tracer.Begin(r.Context(), name, r.Header.Get("Traceparent"), r.Header.Get("Tracestate"))
	if p.span = s; s != nil {
		s.Text("http.request.method", method(r.Method))
		s.Text("http.route", route)
		s.Text("sandpit.request.id", p.id)
		s.Text("sandpit.project", p.caller.Project)
		s.Text("sandpit.token", p.caller.Actor)
		s.Text("sandpit.via", p.caller.Via)
	}
	return r.WithContext(ctx)
}

// endTrace ends a request's span.
func (p *pass) endTrace(status int) {
	if p.span == nil {
		return
	}
	p.span.Int("http.response.status_code", int64(status))
	switch {
	case status >= 500 && p.err != nil:
		p.span.Fail(string(fault.Of(p.err)))
	case status >= 500:
		p.span.Fail(strconv.Itoa(status))
	case p.err != nil: // which is the caller's
		p.span.Text("error.type", string(fault.Of(p.err)))
	}
	p.span.End()
}
