// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"slices"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Caller identifies the sender of a request. It is a value, made once per request by
// the one place that checks credentials; the zero Caller may do nothing.
type Caller struct {
	Project string // whose sandboxes it sees
	// Sandbox is the only sandbox that it reaches; empty: all of its project. Such a caller may do nothing but by
	// what [Caller.Inside] returns.
	Sandbox sandbox.ID
	Actor   string  // the token's name, for events and logs
	TokenID string  // which token; empty for the server's own admin token
	Via     string  // through what it came: "rest", "mcp", "system"; set by the coat
	Scopes  []Scope // what it may do
	Profile string  // of MCP, that its token is for; empty: the server's own

	Address   string // the peer of its connection, without the port; empty for the server itself
	RequestID string // of the request, as its answer has it

	ExpiresAt time.Time // of its token; zero: never

	Session string // the id of the session that it is signed in by; empty: it showed a token

	Issuer string           // the external one of its token; empty: this server
	Words  map[Scope]string // what its issuer calls scopes, of those that it can give; nil: as they are called here. It is not changed

	Opened bool // by Inside, and by nothing else
}

// May reports whether c holds s. Admin implies every other scope of a project,
// [ServerAdmin] all, and SandboxesWrite SandboxesPorts. A caller that reaches one sandbox alone holds
// nothing, see [Caller.Inside].
func (c Caller) May(s Scope) bool {
	if c.Sandbox != "" && !c.Opened {
		return false
	}
	if s == SandboxesPorts && slices.Contains(c.Scopes, SandboxesWrite) {
		return true
	}
	return slices.Contains(c.Scopes, s) || slices.Contains(c.Scopes, ServerAdmin) ||
		s != ServerAdmin && slices.Contains(c.Scopes, Admin)
}

// Inside returns the caller for a verb that concerns one sandbox and nothing else, and that finds it by the caller:
// one that reaches one sandbox alone may do that with its scopes. All other verbs refuse it, since they do not ask
// for this.
func (c Caller) Inside() Caller {
	c.Opened = true
	return c
}

// Reaches reports whether c may know of a sandbox of its project at all.
func (c Caller) Reaches(id sandbox.ID) bool { return c.Sandbox == "" || c.Sandbox == id }

// Owner returns the project that owns what c brings to the server for all, such as images; "" is the server itself.
func (c Caller) Owner() string {
	if c.May(ServerAdmin) {
		return ""
	}
	return c.Project
}

// RequireProject returns nil unless c reaches one sandbox alone, and this is not for the inside of that.
func (c Caller) RequireProject() error {
	if c.Sandbox == "" || c.Opened {
		return nil
	}
	return fault.New(fault.Denied, "the token %q is good for the inside of the sandbox %s, and for nothing else", c.Actor, c.Sandbox).
		WithRemedy("use a token of the project for this (sandpit token create)")
}

// Require returns nil if c holds s, and else Denied, naming the scope that is needed and those
// that are held.
func (c Caller) Require(s Scope) error {
	if c.May(s) {
		return nil
	}
	var err *fault.Error
	if err := c.RequireProject(); err != nil {
		return err
	}
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
