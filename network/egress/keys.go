// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"sandpit.dev/redact/deep"
	"sandpit.dev/sandbox"
)

// Bound is a secret that is bound to hosts, with its value.
type Bound struct {
	sandbox.Secret
	Value string
}

// Keys are the bound secrets of one sandbox, and the headers that its policy sets, which are none. They are never changed,
// and safe for concurrent use; nil has neither.
type Keys struct {
	authority *Authority
	bound     []Bound
	headers   sandbox.HostHeaders
	values    *deep.Set // to be masked in answers
}

// NewKeys makes the keys of a sandbox; a is for all hosts of the secrets and of the headers, which
// are normal, see [sandbox.Secret.Normal] and [sandbox.NetworkPolicy.Normal].
//
// Where two say the same header of the same host, the sandbox's own goes before the
// project's, else the one whose name is first by its bytes.
func NewKeys(a *Authority, bound []Bound, headers sandbox.HostHeaders) *Keys {
	bound = slices.Clone(bound)
	slices.SortStableFunc(bound, func(x, y Bound) int {
		switch own := x.Sandbox != ""; {
		case own == (y.Sandbox != ""):
			return cmp.Compare(x.Name, y.Name)
		case own:
			return -1
		}
		return 1
	})
	values := make([]string, len(bound))
	for i, b := range bound {
		values[i] = b.Value
	}
	return &Keys{authority: a, bound: bound, headers: headers, values: deep.New(values)}
}

// binding is what requests to one name carry.
type binding struct {
	keys   *Keys
	puts   []put
	stands []stand
	sets   []put // that are no secrets
	plain  bool  // for requests without TLS
}

// secret reports whether requests may have a secret.
func (b *binding) secret() bool { return len(b.stands) > 0 }

type put struct{ secret, header, text string }

// binding returns what requests to a name carry; nil: nothing.
func (k *Keys) binding(name string) *binding {
	if k == nil || name == "" {
		return nil
	}
	var out *binding
	for _, s := range k.bound {
		if !slices.ContainsFunc(s.Hosts, func(h string) bool { return covers(h, name) }) {
			continue
		}
		if out == nil {
			out = &binding{keys: k}
		}
		headers := s.StandInHeaders
		if headers == nil {
			headers = sandbox.UsualStandInHeaders()
		}
		one := put{s.Name, s.Header, s.HeaderValue(s.Value)}
		out.stands = append(out.stands, stand{one, s.StandIn(), s.Value, headers})
		if s.Header != sandbox.NoHeader && !slices.ContainsFunc(out.puts, func(p put) bool { return sameHeader(p.header, s.Header) }) {
			out.puts = append(out.puts, one)
		}
	}
	sets := k.sets(name)
	if len(sets) == 0 {
		return out
	}
	if out == nil {
		out = &binding{keys: k}
	}
	out.sets = slices.DeleteFunc(sets, func(s put) bool { // a secret goes before
		return slices.ContainsFunc(out.puts, func(p put) bool { return sameHeader(p.header, s.header) })
	})
	return out
}

// sets are the headers of a name that are no secrets, sorted: of several hosts that cover it the name itself
// goes first, then the longest.
func (k *Keys) sets(name string) (sets []put) {
	var hosts []string
	for h := range k.headers {
		if covers(h, name) {
			hosts = append(hosts, h)
		}
	}
	slices.SortFunc(hosts, func(x, y string) int {
		switch {
		case x == name:
			return -1
		case y == name:
			return 1
		}
		return cmp.Compare(len(y), len(x))
	})
	for _, h := range hosts {
		for header, text := range k.headers[h] {
			if !slices.ContainsFunc(sets, func(p put) bool { return sameHeader(p.header, header) }) {
				sets = append(sets, put{header: header, text: text})
			}
		}
	}
	slices.SortFunc(sets, func(x, y put) int { return cmp.Compare(x.header, y.header) })
	return sets
}

// carried returns what the requests of a connection carry, by what was said there. Without TLS no secret is given.
func (k *Keys) carried(what speech, name string) *binding {
	switch what {
	case speaksTLS:
		return k.binding(name)
	case speaksHTTP:
		if k == nil || name == "" {
			return nil
		}
		if sets := k.sets(name); len(sets) > 0 {
			return &binding{keys: k, sets: sets, plain: true}
		}
	}
	return nil
}

// same reports whether two bindings make requests carry the same.
func (b *binding) same(c *binding) bool {
	if b == nil || c == nil {
		return b == c
	}
	return slices.Equal(b.puts, c.puts) && slices.Equal(b.sets, c.sets) && slices.EqualFunc(b.stands, c.stands, func(x, y stand) bool {
		return x.put == y.put && x.value == y.value && slices.Equal(x.headers, y.headers)
	})
}

// put sets what the requests carry, whatever else they said there, but for headers in which the program
// wrote stand-ins: it chose. It returns the names of the secrets that are in the request then.
func (b *binding) put(h http.Header) (secrets []string) {
	drop := func(header string) {
		for name := range h {
			if sameHeader(header, name) {
				delete(h, name)
			}
		}
	}
	for _, s := range b.sets {
		drop(s.header)
	}
	filled, secrets := b.replace(h)
	chosen := func(name string) bool {
		return slices.ContainsFunc(filled, func(f string) bool { return sameHeader(f, name) })
	}
	for _, p := range b.puts {
		if chosen(p.header) {
			continue
		}
		drop(p.header)
		h.Set(p.header, p.text)
		secrets = append(secrets, p.secret)
	}
	for _, s := range b.sets {
		h.Set(s.header, s.text)
	}
	slices.Sort(secrets)
	return slices.Compact(secrets)
}

// sameHeader reports whether a server may take two names for one: case never counts, and many
// take _ for -.
func sameHeader(a, b string) bool {
	return strings.EqualFold(strings.ReplaceAll(a, "_", "-"), strings.ReplaceAll(b, "_", "-"))
}
