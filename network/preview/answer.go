// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// modify turns the program's answer into the client's.
func (p *Proxy) modify(resp *http.Response) error {
	ps := passOf(resp.Request.Context())
	h := resp.Header
	// What a browser would keep for more than this preview, or beyond its end, do
	// to what it has of other hosts below the domain, or report of visits.
	for _, name := range []string{
		"Strict-Transport-Security", "Alt-Svc", "Public-Key-Pins", "Clear-Site-Data", "NEL", "Report-To", "Reporting-Endpoints",
	} {
		h.Del(name)
	}
	setCookies(h, ps.at)
	if ps.at.prefix != "" {
		seclude(h, ps.at)
	}
	if ps.v.how == byName {
		hideName(h)
		if ps.at.prefix == "" {
			h.Add("Content-Security-Policy", p.ancestors(resp.Request))
		}
	}
	if ps.v.how == byCookie {
		isolate(h, ps.v.unnamed(resp.Request))
	}
	for _, name := range []string{"Location", "Content-Location"} {
		if values := h[name]; len(values) > 0 {
			h.Set(name, outward(values[0], ps.at, resp.Request.Host, ps.asked))
		}
	}
	return nil
}

// hideName keeps pages whose host is the right to see them from naming it to others: browsers send a page's host along
// with what it asks of elsewhere, unless the page says otherwise.
func hideName(h http.Header) {
	policies := strings.Split(strings.Join(h["Referrer-Policy"], ","), ",")
	if !strings.EqualFold(strings.TrimSpace(policies[len(policies)-1]), "no-referrer") { // the last one holds
		h.Set("Referrer-Policy", "same-origin")
	}
}

// isolate keeps an answer that a cookie opened from pages of other origins. Where the browser
// does not say which page asks, it also keeps them from showing it in a frame, and has the
// program's own pages named, which could not be distinguished from those otherwise: to themselves
// only.
func isolate(h http.Header, unnamed bool) {
	const resources = "Cross-Origin-Resource-Policy"
	if len(h[resources]) == 0 {
		h.Set(resources, "same-origin")
	}
	if !unnamed {
		return
	}
	h.Add("Content-Security-Policy", "frame-ancestors 'self'")
	policies := strings.Split(strings.Join(h["Referrer-Policy"], ","), ",")
	if strings.EqualFold(strings.TrimSpace(policies[len(policies)-1]), "no-referrer") { // the last one holds
		h.Set("Referrer-Policy", "same-origin")
	}
}

// setCookies keeps a program's cookies to its own preview: never for a whole
// domain, by path never above the prefix, and never one of ours.
func setCookies(h http.Header, at place) {
	lines := h["Set-Cookie"]
	if len(lines) == 0 {
		return
	}
	h.Del("Set-Cookie")
	for _, line := range lines {
		first, attributes, _ := strings.Cut(line, ";")
		if isOurCookie(first) {
			continue
		}
		out := first
		path := ""
		for attribute := range strings.SplitSeq(attributes, ";") {
			key, value, _ := strings.Cut(attribute, "=")
			switch strings.ToLower(strings.TrimSpace(key)) {
			case "", "domain":
			case "path":
				path = strings.TrimSpace(value) // of several the last holds
			default:
				out += ";" + attribute
			}
		}
		switch {
		case at.prefix == "" && path != "":
			out += "; Path=" + path
		case at.prefix != "" && strings.HasPrefix(path, "/"):
			out += "; Path=" + at.prefix + path
		case at.prefix != "":
			out += "; Path=" + at.prefix + "/"
		}
		h.Add("Set-Cookie", out)
	}
}

// outward translates an address that the program names as its own into the one that leads there
// from outside. All others stay as they are.
func outward(location string, at place, hosts ...string) string {
	u, err := url.Parse(location)
	if err != nil {
		return location
	}
	switch {
	case u.Scheme == "" && u.Host == "" && strings.HasPrefix(location, "/"):
		return at.prefix + location
	case u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https", u.Host == "" || u.User != nil:
		return location
	case !slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(u.Host, h) }) && !itself(u, at.port):
		return location
	}
	_, rest, _ := strings.Cut(location, "//")
	i := strings.IndexAny(rest, "/?#")
	switch {
	case i < 0:
		rest = "/"
	case rest[i] == '/':
		rest = rest[i:]
	default:
		rest = "/" + rest[i:]
	}
	if strings.HasPrefix(rest, "//") && at.prefix == "" {
		return location // a path alone would name a host
	}
	return at.prefix + rest
}

// itself reports whether an address is the program's port as seen from inside.
func itself(u *url.URL, port int) bool {
	host := u.Hostname()
	return u.Port() == strconv.Itoa(port) && (isLoopback(host) || host == "0.0.0.0" || host == "::")
}
