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

// Keys are the bound secrets of one sandbox. They are never changed, and safe for
// concurrent use; nil has no secrets.
type Keys struct {
	authority *Authority
	bound     []Bound
	values    *deep.Set // to be masked in answers
}

// NewKeys makes the keys of a sandbox; a is for all hosts of the secrets. The secrets
// are normal, see [sandbox.Secret.Normal].
//
// Where two say the same header of the same host, the sandbox's own goes before the
// project's, else the one whose name is first by its bytes.
func NewKeys(a *Authority, bound []Bound) *Keys {
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
	return &Keys{authority: a, bound: bound, values: deep.New(values)}
}

// binding is what requests to one name carry.
type binding struct {
	keys   *Keys
	puts   []put
	stands []stand
}

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
		if !slices.ContainsFunc(out.puts, func(p put) bool { return sameHeader(p.header, s.Header) }) {
			out.puts = append(out.puts, one)
		}
	}
	return out
}

// same reports whether two bindings make requests carry the same.
func (b *binding) same(c *binding) bool {
	if b == nil || c == nil {
		return b == c
	}
	return slices.Equal(b.puts, c.puts) && slices.EqualFunc(b.stands, c.stands, func(x, y stand) bool {
		return x.put == y.put && x.value == y.value && slices.Equal(x.headers, y.headers)
	})
}

// put sets what the requests carry, whatever else they said there, but for headers in which the program
// wrote stand-ins: it chose. It returns the names of the secrets that are in the request then.
func (b *binding) put(h http.Header) (secrets []string) {
	filled, secrets := b.replace(h)
	chosen := func(name string) bool {
		return slices.ContainsFunc(filled, func(f string) bool { return sameHeader(f, name) })
	}
	for _, p := range b.puts {
		if chosen(p.header) {
			continue
		}
		for name := range h {
			if sameHeader(p.header, name) {
				delete(h, name)
			}
		}
		h.Set(p.header, p.text)
		secrets = append(secrets, p.secret)
	}
	slices.Sort(secrets)
	return slices.Compact(secrets)
}

// sameHeader reports whether a server may take two names for one: case never counts, and many
// take _ for -.
func sameHeader(a, b string) bool {
	return strings.EqualFold(strings.ReplaceAll(a, "_", "-"), strings.ReplaceAll(b, "_", "-"))
}
