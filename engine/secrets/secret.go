// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"errors"
	"slices"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/internal/seal"
	"sandpit.dev/redact"
	"sandpit.dev/sandbox"
)

// Secret is a secret with its value.
type Secret struct {
	sandbox.Secret
	Value string
}

// Set is the secrets that hold for one sandbox, or for a project itself, and what is made
// of them. It never changes.
type Set struct {
	All    []Secret       // by name
	Values [][]byte       // of those that are variables: for the agent to mask
	Labels *redact.Labels // takes the values of All out of records

	project, own *Set // what it was made of
}

func newSet(all []Secret) *Set {
	s := &Set{All: all, Labels: Labels(all)}
	for _, o := range all {
		if !o.Bound() {
			s.Values = append(s.Values, []byte(o.Value))
		}
	}
	return s
}

// merge returns what holds for a sandbox with secrets of its own.
func merge(project, own *Set) *Set {
	all := slices.Clone(own.All)
	for _, s := range project.All {
		if !slices.ContainsFunc(own.All, func(o Secret) bool { return o.Name == s.Name }) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Secret) int { return strings.Compare(a.Name, b.Name) })
	s := newSet(all)
	s.project, s.own = project, own
	return s
}

// Labels returns what takes the values of secrets out of records.
func Labels(all []Secret) *redact.Labels { return redact.NewLabels(redact.Record, named(all)...) }

func named(all []Secret) []redact.Secret {
	out := make([]redact.Secret, len(all))
	for i, s := range all {
		out[i] = redact.Secret{Name: s.Name, Value: s.Value}
	}
	return out
}

// open returns a secret with the value that was sealed.
func open(ring *seal.Ring, s *sandbox.Secret, sealed []byte) (Secret, error) {
	value, err := ring.Open(sealed, binding(s)...)
	if err == nil {
		return Secret{*s, string(value)}, nil
	}
	if gone, ok := errors.AsType[*seal.KeyGoneError](err); ok {
		return Secret{}, fault.Wrap(fault.Unavailable, err, "the secret %s was sealed by the key %s, which this server does not have", s.Name, gone.ID).
			WithRemedy("put that key back into the server's key file (secrets.key_file), below the one that is there; or set or delete the secret")
	}
	return Secret{}, fault.Wrap(fault.Unavailable, err, "the secret %s on record does not open: it was changed, or is another's", s.Name).
		WithRemedy("set it again, or delete it")
}

// binding is what the sealed value of a secret is bound to.
func binding(s *sandbox.Secret) []string {
	return []string{"secret", s.Project, string(s.Sandbox), s.Name}
}
