// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package access

import "time"

// SessionCookie is the name of the cookie that has a session's secret. Browsers take it for the one host that sets it, without
// a domain, over a secure connection and with the path "/".
const SessionCookie = "__Host-sandpit"

// Session is the record of a person who is signed in by a browser, or of a code that is good for one sign-in. Of its
// secret, and of that of the token that it is bound to, there are hashes alone: it is valid as long as that secret is.
type Session struct {
	ID         string // of the form of a sandbox's
	Hash       []byte // SHA-256 of its secret, 32 bytes
	Code       bool   // it is good for one sign-in, and for nothing else
	TokenHash  []byte // SHA-256 of the token's secret, 32 bytes
	TokenID    string // which token; empty for the server's own admin token
	Project    string // of the token
	Actor      string // the token's name, as events have it
	Address    string // that the person signed in from
	Agent      string // what the browser calls itself, clipped
	CreatedAt  time.Time
	LastUsedAt time.Time // exact to about a minute
	ExpiresAt  time.Time
}
