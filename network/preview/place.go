// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Root is the path prefix of previews by path.
const Root = "/preview/"

// IsPath reports whether an escaped path belongs to a preview.
func IsPath(escaped string) bool { return strings.HasPrefix(escaped, Root) }

// place is one preview.
type place struct {
	sandbox string
	port    int
	link    string // by a link that is on record: its id, with which sandbox is not known; else ""
	prefix  string // by path: what stands before the program's own, without a slash at its end; else ""
	token   string // by path: the link's token, where it stands in the path in place of the id; else ""
	key     string // of the sandbox's own token; "": it has none, or it is not known yet
}

func portOf(port string) (int, error) {
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port {
		return 0, fault.New(fault.NotFound, "there is no port %q; ports are 1 to 65535", sandbox.Clip(port, 40))
	}
	return n, nil
}

func newPlace(id, port string) (place, error) {
	n, err := portOf(port)
	if err != nil {
		return place{}, err
	}
	if !sandbox.ValidID(id) {
		return place{}, fault.New(fault.NotFound, "there is no sandbox with the id %q", sandbox.Clip(id, 80)).
			WithRemedy("name the sandbox by its id, not by its key")
	}
	return place{sandbox: id, port: n}, nil
}

// byPath reads an escaped path. rest is the program's own, escaped as it was
// sent, and "" if the slash after the prefix is missing.
func (l *Links) byPath(escaped string) (p place, rest string, err error) {
	segments, ok := strings.CutPrefix(escaped, Root)
	if !ok {
		return p, "", fault.New(fault.NotFound, "nothing is served at %s", sandbox.Clip(escaped, 200))
	}
	first, rest, slash := strings.Cut(segments, "/")
	if strings.HasPrefix(first, tokenPrefix) {
		if p, err = placeOf(first); err != nil {
			return p, "", err
		}
		p.prefix, p.token = Root+first, first
	} else {
		var port string
		port, rest, slash = strings.Cut(rest, "/")
		if len(first) == hostTokenLen {
			p, err = l.linkedPlace(first, port)
			p.token = first
		} else {
			p, err = newPlace(first, port)
		}
		if err != nil {
			return p, "", err
		}
		p.prefix = Root + first + "/" + port
	}
	if slash {
		rest = "/" + rest
	}
	return p, rest, nil
}

// looksLikePreview is a host's last label before the domain that no other host
// of ours has.
var looksLikePreview = regexp.MustCompile(`^[0-9]+-`)

// byHost reads a Host header. ours reports whether it names a preview; err, that the preview
// cannot exist.
func (l *Links) byHost(hostport string) (p place, ours bool, err error) {
	domain := l.domain
	if domain == "" {
		return p, false, nil
	}
	host, port := splitHost(hostport)
	label, ok := strings.CutSuffix(host, "."+domain)
	if !ok || !looksLikePreview.MatchString(label[strings.LastIndexByte(label, '.')+1:]) {
		return p, false, nil
	}
	for _, c := range port {
		if c < '0' || c > '9' {
			return p, true, fault.New(fault.NotFound, "there is no host %q", sandbox.Clip(hostport, 100))
		}
	}
	number, id, _ := strings.Cut(label, "-")
	if len(id) == hostTokenLen {
		p, err = l.linkedPlace(id, number)
		return p, true, err
	}
	p, err = newPlace(id, number)
	return p, true, err
}

// linkedPlace returns the place of a link that is on record, by its token.
func (l *Links) linkedPlace(token, port string) (p place, err error) {
	if p.link, err = l.readHost(token); err == nil {
		p.port, err = portOf(port)
	}
	return p, err
}

// splitHost returns the name in its canonical form, and the port or "".
func splitHost(hostport string) (host, port string) {
	host = hostport
	if h, p, err := net.SplitHostPort(hostport); err == nil {
		host, port = h, p
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), ".")), port
}

// loopbackDomain always leads to the machine that asks (RFC 6761).
const loopbackDomain = "localhost"

func isLoopback(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	return host == loopbackDomain || strings.HasSuffix(host, "."+loopbackDomain)
}

// CheckDomain checks the domain of previews by host name; empty: there are no such previews.
func CheckDomain(field, domain string) error {
	if domain == "" {
		return nil
	}
	bad := fault.InvalidField(field, "%q is not a valid lower-case domain name", sandbox.Clip(domain, 80)).
		WithRemedy("write it without a port and without dots at its ends, as previews.example.org; names below it must lead to the server")
	if _, err := netip.ParseAddr(domain); err == nil || len(domain) > 200 {
		return bad
	}
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return bad
		}
	}
	return nil
}
