// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"slices"
	"time"

	"sandpit.dev/fault"
)

// Caller identifies the sender of a request. It is a value, made once per request by
// the one place that checks credentials; the zero Caller may do nothing.
type Caller struct {
	Project string  // whose sandboxes it sees
	Actor   string  // the token's name, for events and logs
	TokenID string  // which token; empty for the server's own admin token
	Via     string  // through what it came: "rest", "mcp", "system"; set by the coat
	Scopes  []Scope // what it may do
	Profile string  // of MCP, that its token is for; empty: the server's own

	Address   string // the peer of its connection, without the port; empty for the server itself
	RequestID string // of the request, as its answer has it

	ExpiresAt time.Time // of its token; zero: never

	Issuer string           // the external one of its token; empty: this server
	Words  map[Scope]string // what its issuer calls scopes, of those that it can give; nil: as they are called here. It is not changed
}

// May reports whether c holds s. Admin implies every other scope of a project, and
// [ServerAdmin] all.
func (c Caller) May(s Scope) bool {
	return slices.Contains(c.Scopes, s) || slices.Contains(c.Scopes, ServerAdmin) ||
		s != ServerAdmin && slices.Contains(c.Scopes, Admin)
}

// Owner returns the project that owns what c brings to the server for all, such as images; "" is the server itself.
func (c Caller) Owner() string {
	if c.May(ServerAdmin) {
		return ""
	}
	return c.Project
}

// Require returns nil if c holds s, and else Denied, naming the scope that is needed and those
// that are held.
func (c Caller) Require(s Scope) error {
	if c.May(s) {
		return nil
	}
	var err *fault.Error
	if s == ServerAdmin {
		err = fault.New(fault.Denied, "this concerns the whole server; the token %q belongs to the project %s", c.Actor, c.Project).
			WithRemedy("use the server's own admin token, which sandpit up prints the place of")
	} else {
		err = fault.New(fault.Denied, "this needs the scope %s; the token %q has %s", s, c.Actor, joinScopes(c.Scopes)).
			WithRemedy("use a token that has the scope %s, or have an administrator make one (sandpit token create --scope %s)", s, s)
	}
	err.Scope = string(s)
	return err
}
