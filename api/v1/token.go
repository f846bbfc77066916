// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Token is a bearer token without its secret.
type Token struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Project    string     `json:"project"`
	Scopes     []string   `json:"scopes"`
	Profile    string     `json:"mcp_profile,omitempty" jsonschema:"the set of MCP tools that its holder gets; absent: the server's own"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at" jsonschema:"exact to about a minute; null: never"`
	ExpiresAt  *time.Time `json:"expires_at" jsonschema:"null: never"`
	OldUntil   *time.Time `json:"old_secrets_until,omitempty" jsonschema:"until when secrets are valid that a rotation replaced; absent: none is"`
}

// Whoami is the token that a request was sent with.
type Whoami struct {
	SandboxID *string    `json:"sandbox_id,omitempty" jsonschema:"the only sandbox that the token is good for"`
	TokenID   *string    `json:"token_id" jsonschema:"null: the server's own admin token, which has no record"`
	Name      string     `json:"name"`
	Project   string     `json:"project" jsonschema:"whose sandboxes it reaches"`
	Scopes    []string   `json:"scopes"`
	Profile   string     `json:"mcp_profile,omitempty" jsonschema:"the set of MCP tools that its holder gets; absent: the server's own"`
	ExpiresAt *time.Time `json:"expires_at" jsonschema:"of the token, or of a secret that a rotation replaced; null: never"`
	Left      *Amounts   `json:"left,omitempty" jsonschema:"what the project may have yet of the resources that it has a quota of; absent: it has none. GET /limits has the quotas and what is used"`
}

// CreateToken asks for a token.
type CreateToken struct {
	Name             string     `json:"name" jsonschema:"1 to 64 printable characters, unique in the project"`
	Project          *string    `json:"project,omitempty" jsonschema:"1 to 63 lower-case letters, digits and dashes; the default is the caller's"`
	Scopes           []string   `json:"scopes,omitempty" jsonschema:"sandboxes:read, sandboxes:write, admin; the default is the first two"`
	Profile          string     `json:"mcp_profile,omitempty" jsonschema:"the set of MCP tools that its holder gets at /mcp; the default is the server's own"`
	ExpiresAt        *time.Time `json:"expires_at,omitempty" jsonschema:"when it stops working; the default is never"`
	ExpiresInSeconds *int64     `json:"expires_in_seconds,omitempty" jsonschema:"the same from now, 1 to 3153600000"`
}

// CreatedToken is a new token with its secret, which is never shown again.
type CreatedToken struct {
	Token
	Secret string `json:"token" jsonschema:"the secret: keep it, it is never shown again"`
	// SecretOmitted is set in the answer to a request that was repeated.
	SecretOmitted bool `json:"token_omitted,omitempty" jsonschema:"true: the request was repeated, and the secret is in its first answer alone; if that is lost, delete the token and make another"`
}

// CreateSandboxToken asks for a token that is good for one sandbox. Every field is optional.
type CreateSandboxToken struct {
	Name             string   `json:"name,omitempty" jsonschema:"what events call its holder, after sandbox:; 1 to 64 printable characters; the default is token"`
	Scopes           []string `json:"scopes,omitzero" jsonschema:"what it is good for: read (files, output, records), write (run, change files, start, stop, pause, resume), ports (what programs serve; write has it); the default is read and write"`
	ExpiresInSeconds *int64   `json:"expires_in_seconds,omitempty" jsonschema:"how long it is valid, 1 to 31622400; the default is as long as the sandbox exists, which no token outlives"`
}

// SandboxToken is a token that is good for one sandbox. No record of it is kept.
type SandboxToken struct {
	Secret string `json:"token,omitempty" jsonschema:"the token: keep it, it is never shown again"`
	// SecretOmitted is set in the answer to a create that was repeated with its idempotency key.
	SecretOmitted bool       `json:"token_omitted,omitempty" jsonschema:"true: the request was repeated, and the token is in its first answer alone; make another"`
	SandboxID     string     `json:"sandbox_id"`
	Name          string     `json:"name"`
	Scopes        []string   `json:"scopes"`
	ExpiresAt     *time.Time `json:"expires_at" jsonschema:"null: with the sandbox"`
}

// RotateToken asks for another secret of a token.
type RotateToken struct {
	GraceSeconds *int64 `json:"grace_seconds,omitempty" jsonschema:"how long the secrets before it stay valid, 0 to 2592000; 0: they end at once; the default is 3600"`
}

// RotatedToken is a token with its new secret, which is never shown again.
type RotatedToken struct {
	Token
	Secret string `json:"token" jsonschema:"the new secret: keep it, it is never shown again"`
}

// TokenList is all tokens that the caller may see.
type TokenList struct {
	Items []Token `json:"items"`
}
