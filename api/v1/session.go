// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// SignIn exchanges a token, or a code, for a session. One of them is given.
type SignIn struct {
	Token string `json:"token,omitempty" jsonschema:"a token of this server that is not of one sandbox"`
	Code  string `json:"code,omitempty" jsonschema:"that POST /session-codes made: good once, for a minute"`
}

// Session is a person who is signed in by a browser.
type Session struct {
	ID         string    `json:"id"`
	Project    string    `json:"project" jsonschema:"of the token that it is bound to"`
	Actor      string    `json:"actor" jsonschema:"the token's name"`
	TokenID    *string   `json:"token_id" jsonschema:"null: the server's own admin token"`
	Address    string    `json:"address" jsonschema:"that the person signed in from"`
	Agent      string    `json:"agent" jsonschema:"what the browser calls itself"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at" jsonschema:"exact to about a minute"`
	ExpiresAt  time.Time `json:"expires_at" jsonschema:"it ends before, when it is not used for long or its token is valid no more"`
	Current    bool      `json:"current" jsonschema:"it is the one that the request came by"`
}

// SessionList is all sessions that the caller may see.
type SessionList struct {
	Items []Session `json:"items"`
}

// SessionCode is the right to one sign-in.
type SessionCode struct {
	Code      string    `json:"code" jsonschema:"for POST /session"`
	ExpiresAt time.Time `json:"expires_at"`
}
