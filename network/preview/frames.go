// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Framers are the pages that may show in a frame what the host name of a link opens, beside those of that host itself.
// The zero value is none.
type Framers struct {
	// Hosts are the names by which people reach the server's own pages; nil: it has none that show previews.
	// They are framers by the scheme and the port that the preview is reached by.
	Hosts []string
	// Origins are further web origins, as browsers send them.
	Origins []string
}

// consoles are the names at which the server's pages show previews. Where previews are below localhost, the browser is on the
// server's machine, and there alone a loopback address is the server's.
func (f Framers) consoles(domain string) []string {
	if f.Hosts == nil || domain == "" {
		return nil
	}
	if domain == loopbackDomain {
		return []string{loopbackDomain, "127.0.0.1"}
	}
	var all []string
	for _, name := range f.Hosts {
		// A policy cannot name an address of IPv6.
		addr, err := netip.ParseAddr(name)
		switch isAddr := err == nil; {
		case isLoopback(name), isAddr && (!addr.Is4() || addr.IsUnspecified()), !isAddr && CheckDomain("hosts", name) != nil, slices.Contains(all, name):
		default:
			all = append(all, name)
		}
	}
	return all
}

// FrameSource returns where a page of the server's that answers r may load frames from, as a policy names it: the hosts of
// previews. It is "" where their answers let no such page show them, or the client that sent r does not reach them.
func (p *Proxy) FrameSource(r *http.Request) string {
	host, port := splitHost(r.Host)
	if !slices.Contains(p.consoles, host) || p.links.host(r, "x", 1) == "" || strings.Trim(port, "0123456789") != "" {
		return ""
	}
	return scheme(r) + "://*." + withPort(p.links.domain, port)
}

// ancestors returns the policy of an answer to r at a link's host: which pages may show it in a frame.
func (p *Proxy) ancestors(r *http.Request) string {
	_, port := splitHost(r.Host)
	policy := "frame-ancestors 'self'"
	for _, name := range p.consoles {
		policy += " " + scheme(r) + "://" + withPort(name, port)
	}
	for _, origin := range p.origins {
		policy += " " + origin
	}
	return policy
}

func withPort(host, port string) string {
	if port == "" {
		return host
	}
	return host + ":" + port
}
