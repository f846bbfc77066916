// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// maxStandIns is how many stand-ins of one request are replaced: more are left as they are, since each may
// become four hundred times as long.
const maxStandIns = 8

// stand is a secret's stand-in: a word that programs write in some headers of requests where they mean the value.
type stand struct {
	put
	word, value string
	headers     []string
}

// replace puts values where the program wrote their stand-ins, and returns the headers that it did so in, with
// the names of the secrets. In a secret's own header its format holds, but for HTTP's basic authentication,
// which has a name beside the value.
func (b *binding) replace(h http.Header) (headers, secrets []string) {
	left := maxStandIns
	for name, lines := range h {
		var used []string
		for i, line := range lines {
			var more []string
			if lines[i], more = b.fill(name, line, &left); more != nil {
				used = append(used, more...)
			}
		}
		for _, s := range b.stands { // the first, as for puts
			if s.in(name) && sameHeader(s.header, name) && slices.ContainsFunc(lines, func(l string) bool { return s.find(l) >= 0 }) {
				h[name], used = []string{s.text}, []string{s.secret}
				break
			}
		}
		if used != nil {
			headers, secrets = append(headers, name), append(secrets, used...)
		}
	}
	return headers, secrets
}

// fill fills in one line of a header.
func (b *binding) fill(name, line string, left *int) (out string, used []string) {
	scheme, packed, ok := strings.Cut(line, " ")
	var plain []byte
	if ok = ok && strings.EqualFold(scheme, "basic"); ok {
		var err error
		plain, err = base64.StdEncoding.DecodeString(strings.TrimSpace(packed))
		ok = err == nil
	}
	for _, s := range b.stands {
		var n int
		switch {
		case !s.in(name):
		case ok:
			var text string
			if text, n = s.fill(string(plain), left); n > 0 {
				plain, line = []byte(text), scheme+" "+base64.StdEncoding.EncodeToString([]byte(text))
			}
		case !sameHeader(s.header, name):
			line, n = s.fill(line, left)
		}
		if n > 0 {
			used = append(used, s.secret)
		}
	}
	return line, used
}

// in reports whether the stand-in is replaced in a header.
func (s *stand) in(name string) bool {
	return slices.ContainsFunc(s.headers, func(h string) bool { return sameHeader(h, name) })
}

// find returns where the stand-in is in a text; below zero: it is not. That of a secret with a longer name is
// another one.
func (s *stand) find(text string) int {
	for from := 0; ; {
		at := strings.Index(text[from:], s.word)
		if at < 0 {
			return -1
		}
		at += from
		if from = at + len(s.word); from == len(text) || !inName(text[from]) {
			return at
		}
	}
}

// fill replaces the stand-in in a text, as often as there are left, and returns how often it did.
func (s *stand) fill(text string, left *int) (string, int) {
	var out strings.Builder
	n := 0
	for *left > 0 {
		at := s.find(text)
		if at < 0 {
			break
		}
		out.WriteString(text[:at] + s.value)
		text = text[at+len(s.word):]
		*left--
		n++
	}
	return out.String() + text, n
}

// inName reports whether a byte may be in the name of a secret.
func inName(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
