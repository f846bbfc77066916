// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// hosts are the names that a request may call the server by. A browser that was
// given a name which an attacker lets resolve to this machine sends that name,
// and so it is refused (DNS rebinding).
type hosts struct{ names map[string]bool }

func newHosts(configured []string) hosts {
	h := hosts{names: map[string]bool{"localhost": true}}
	for _, name := range configured {
		h.names[canonicalHost(name)] = true
	}
	return h
}

// CheckHosts passes only requests that name a host of the server's on to next: for handlers that
// check everything else themselves.
func (g *Guard) CheckHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.checkHost(r); err != nil {
			Error(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g *Guard) checkHost(r *http.Request) error {
	host := canonicalHost(hostName(r.Host))
	if g.hosts.names[host] {
		return nil
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.IsLoopback() || addr == localAddr(r) {
			return nil
		}
	} else if strings.HasSuffix(host, ".localhost") {
		return nil // always loopback, RFC 6761
	}
	return fault.New(fault.Denied, "the server is not known under the host %q", sandbox.Clip(r.Host, 100)).
		WithRemedy("call it by a loopback address, or name the host in the server's configuration")
}

// localAddr is the address that the connection came in on. Naming it proves
// that the client knew it: no name was resolved.
func localAddr(r *http.Request) netip.Addr {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return a.AddrPort().Addr().Unmap()
}

// hostName takes the port off a Host header and the brackets off an address.
func hostName(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}

func canonicalHost(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return addr.Unmap().String()
	}
	return host
}

// checkOrigin refuses requests that a page of another site makes a browser send. Reads are
// refused as well: a WebSocket is opened by a GET, and no other site has any business here.
func (g *Guard) checkOrigin(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" && !g.origins[origin] && !sameOrigin(origin, r.Host) {
		return fault.New(fault.Denied, "pages of the origin %q may not call this server", sandbox.Clip(origin, 100)).
			WithRemedy("name the origin in the server's configuration if its pages are trusted")
	}
	if err := g.cross.Check(r); err != nil {
		return fault.Wrap(fault.Denied, err, "a page of another site may not call this server").
			WithRemedy("name its origin in the server's configuration if its pages are trusted")
	}
	return nil
}

// checkSite refuses requests that a page of another site caused, as the browser reports it,
// including reads: the page cannot read the answer, but it need not cause one. Browsers report
// this for requests without an Origin (an image, a script).
func (g *Guard) checkSite(r *http.Request) error {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
	default:
		return nil
	}
	if g.origins[r.Header.Get("Origin")] {
		return nil
	}
	return fault.New(fault.Denied, "a page of another site may not call this server").
		WithRemedy("name its origin in the server's configuration if its pages are trusted, and have it call by fetch, which sends the origin")
}

// navigates reports whether a browser opens a page of its own by the request.
func navigates(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func sameOrigin(origin, host string) bool {
	scheme, rest, ok := strings.Cut(origin, "://")
	return ok && (scheme == "http" || scheme == "https") && strings.EqualFold(rest, host)
}
