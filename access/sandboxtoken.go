// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"slices"
	"strings"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// SandboxToken is what a token says that is good for one sandbox. No record of it is kept: it is signed, and the
// sandbox's record has the number that tells those that are valid from those before.
type SandboxToken struct {
	Sandbox   sandbox.ID
	Name      string
	Scopes    []Scope   // of [SandboxScopes]
	ExpiresAt time.Time // in whole seconds; zero: when the sandbox is deleted
}

// DefaultSandboxToken is the name of one that was made without any.
const DefaultSandboxToken = "token"

// sandboxActor begins the names of the callers that such tokens are, in events.
const sandboxActor = "sandbox:"

// Actor returns how events name the one who has the token.
func (t SandboxToken) Actor() string { return sandboxActor + t.Name }

// SandboxScopes lists the scopes that a token of one sandbox can have.
func SandboxScopes() []Scope { return []Scope{SandboxesRead, SandboxesWrite, SandboxesPorts} }

// ShortScope is a scope of a token of one sandbox as it is asked for: read, write or ports.
func ShortScope(s Scope) string {
	_, short, _ := strings.Cut(string(s), ":")
	return short
}

// CheckSandboxScopes returns the scopes that words stand for, each once and in the order of [SandboxScopes]; for no
// words read and write. An unknown one is Invalid, about field.
func CheckSandboxScopes(field string, words []string) ([]Scope, error) {
	if len(words) == 0 {
		return []Scope{SandboxesRead, SandboxesWrite}, nil
	}
	known := func(w string) bool {
		return slices.ContainsFunc(SandboxScopes(), func(s Scope) bool { return w == string(s) || w == ShortScope(s) })
	}
	for _, w := range words {
		if !known(w) {
			return nil, fault.InvalidField(field, "%q is not a scope of a token of one sandbox; there are read, write and ports", sandbox.Clip(w, 40))
		}
	}
	return slices.DeleteFunc(SandboxScopes(), func(s Scope) bool {
		return !slices.Contains(words, string(s)) && !slices.Contains(words, ShortScope(s))
	}), nil
}
