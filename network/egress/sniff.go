// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"sandpit.dev/sandbox"
)

// speech is what the first bytes of a connection are.
type speech int

const (
	unclear speech = iota // more bytes are needed to tell
	other                 // neither of these
	speaksTLS
	speaksHTTP
	malformed // one of these, and not as it must be
)

// maxFirst is how many bytes are looked at, and so the most of a hello or a head.
const maxFirst = 64 << 10

// sniff tells what the first bytes of a connection are, and which host they name:
// "" for none, or for an address.
func sniff(b []byte) (speech, string) {
	if len(b) == 0 {
		return unclear, ""
	}
	switch {
	case recordFirst <= b[0] && b[0] <= recordLast && (len(b) == 1 || b[1] <= 0x0f):
		return sniffTLS(b)
	case b[0]&0x80 != 0 && len(b) < 3:
		return unclear, ""
	case b[0]&0x80 != 0 && b[2] == clientHello: // of SSL 2, whose form servers took for long
		return malformed, ""
	}
	return sniffHTTP(b)
}

// Of TLS, RFC 8446.
const (
	recordFirst     = 20
	recordHandshake = 22
	recordLast      = 24
	clientHello     = 1
	serverName      = 0
	hostName        = 0
)

// sniffTLS reads the server name of a ClientHello, which may be spread over records.
// Servers skip other records before it, and empty ones; no client sends them.
func sniffTLS(b []byte) (speech, string) {
	var hello []byte
	for rest := b; ; {
		if len(rest) > 0 && rest[0] != recordHandshake || len(rest) > 1 && rest[1] != 3 {
			if len(b) == 1 {
				return unclear, ""
			}
			return malformed, ""
		}
		if len(rest) < 5 {
			return short(b)
		}
		n := int(binary.BigEndian.Uint16(rest[3:]))
		if n == 0 || n > 1<<14 {
			return malformed, ""
		}
		got := rest[5:min(5+n, len(rest))]
		hello = append(hello, got...)
		if len(hello) >= 4 {
			if hello[0] != clientHello {
				return malformed, ""
			}
			size := int(hello[1])<<16 | int(binary.BigEndian.Uint16(hello[2:]))
			if size > maxFirst {
				return malformed, ""
			}
			if len(hello) >= 4+size {
				return helloName(hello[4 : 4+size])
			}
		}
		if len(rest) < 5+n {
			return short(b)
		}
		rest = rest[5+n:]
	}
}

func short(b []byte) (speech, string) {
	if len(b) >= maxFirst {
		return malformed, ""
	}
	return unclear, ""
}

// helloName finds the server_name extension in a ClientHello's body.
func helloName(b []byte) (speech, string) {
	r := reader{b: b}
	r.skip(2 + 32) // version, random
	r.skip(int(r.uint8()))
	r.skip(int(r.uint16())) // ciphers
	r.skip(int(r.uint8()))  // compression
	if r.bad {
		return malformed, ""
	}
	if len(r.b) == 0 {
		return speaksTLS, "" // no extensions at all
	}
	ext := reader{b: r.take(int(r.uint16()))}
	if r.bad || len(r.b) != 0 {
		return malformed, ""
	}
	name, seen := "", false
	for len(ext.b) > 0 {
		kind := ext.uint16()
		body := reader{b: ext.take(int(ext.uint16()))}
		if ext.bad {
			return malformed, ""
		}
		if kind != serverName {
			continue
		}
		list := reader{b: body.take(int(body.uint16()))}
		form := list.uint8()
		host := string(list.take(int(list.uint16())))
		// One name is all that there may be, and what two would mean is not known.
		if seen || body.bad || list.bad || len(body.b) != 0 || len(list.b) != 0 || form != hostName {
			return malformed, ""
		}
		var ok bool
		if name, ok = sandbox.NormalName(host); !ok {
			return malformed, ""
		}
		seen = true
	}
	return speaksTLS, name
}

// reader takes bytes off; what is not there makes it bad.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.b, r.bad = nil, true
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) skip(n int) { r.take(n) }

func (r *reader) uint8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// methods are those of HTTP that make a line a request even where its end is not that
// of one: servers are lenient there.
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "PROPFIND", "PRI", "REPORT", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK"}

const (
	// maxLine is how long a first line may be while it may yet be a request's.
	maxLine = 8 << 10
	space   = " \t\v\f\r"
)

// isRequest tells by the first line whether b is HTTP, however badly written: a token, and the
// version at the line's end.
func isRequest(b []byte) speech {
	method := b
	if i := bytes.IndexFunc(b, func(r rune) bool { return !tokenChar(r) }); i >= 0 {
		if method = b[:i]; i == 0 || !strings.ContainsRune(space+"\n", rune(b[i])) {
			return other
		}
	}
	line, _, whole := bytes.Cut(b, []byte("\n"))
	if !whole {
		if len(b) > maxLine {
			return malformed
		}
		return unclear
	}
	words := bytes.Fields(line)
	last := words[len(words)-1]
	if len(words) > 1 && len(last) >= 5 && bytes.EqualFold(last[:5], []byte("HTTP/")) || slices.Contains(methods, string(method)) {
		return speaksHTTP
	}
	return other
}

func tokenChar(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// sniffHTTP reads the host of a request's head.
func sniffHTTP(b []byte) (speech, string) {
	// Servers skip empty lines before a request, and some skip spaces.
	start := bytes.TrimLeft(b, space+"\n")
	if len(start) == 0 {
		return short(b)
	}
	if what := isRequest(start); what != speaksHTTP {
		return what, ""
	}
	if len(bytes.Trim(b[:len(b)-len(start)], "\r\n")) > 0 {
		return malformed, ""
	}
	b = start
	end := bytes.Index(b, []byte("\r\n\r\n"))
	head := b
	if end >= 0 {
		head = b[:end]
	}
	// Some servers end a line there, others do not.
	if bytes.Count(head, []byte("\n")) != bytes.Count(head, []byte("\r\n")) {
		return malformed, ""
	}
	if end < 0 {
		return short(b)
	}
	lines := strings.Split(string(head), "\r\n")
	method, rest, _ := strings.Cut(lines[0], " ")
	target, version, _ := strings.Cut(rest, " ")
	if version != "HTTP/1.1" && version != "HTTP/1.0" || target == "" || strings.ContainsAny(target, space+"\x00") {
		return malformed, ""
	}
	var host string
	named := false
	for _, line := range lines[1:] {
		// A continued line, or space before the colon, may mean something else to the server.
		field, value, ok := strings.Cut(line, ":")
		if !ok || field == "" || strings.ContainsAny(field, " \t") || strings.ContainsAny(line, "\r\n\x00") {
			return malformed, ""
		}
		if !strings.EqualFold(field, "Host") {
			continue
		}
		if named {
			return malformed, ""
		}
		host, named = strings.Trim(value, " \t"), true
	}
	if method == "CONNECT" || target[0] != '/' && target != "*" { // it names a host itself
		whole := target
		if method != "CONNECT" {
			u, err := url.Parse(target)
			if err != nil || u.Host == "" || u.User != nil {
				return malformed, ""
			}
			whole = u.Host
		}
		if host == "" {
			host = whole
		}
		// Servers differ in which of the two they believe.
		one, ok := hostOf(host)
		other, fine := hostOf(whole)
		if !ok || !fine || one != other {
			return malformed, ""
		}
	}
	if host == "" {
		return speaksHTTP, ""
	}
	name, ok := hostOf(host)
	if !ok {
		return malformed, ""
	}
	return speaksHTTP, name
}

// hostOf takes the port off a host; an address is no name.
func hostOf(host string) (string, bool) {
	if _, err := netip.ParseAddrPort(host); err == nil {
		return "", true
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return "", true
	}
	if name, port, ok := strings.Cut(host, ":"); ok {
		if strings.Trim(port, "0123456789") != "" {
			return "", false
		}
		host = name
	}
	return sandbox.NormalName(host)
}
