// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Secret is a secret of a project, or of one sandbox, without its value, which no answer
// contains. Without hosts it is a variable of commands. With hosts it never enters a sandbox: it
// is put into a header of requests to them, on their way.
type Secret struct {
	Name      string    `json:"name" jsonschema:"of the variable: a letter or _, then letters, digits and _"`
	SandboxID *string   `json:"sandbox_id" jsonschema:"the sandbox whose own it is; null: the project's"`
	Hosts     []string  `json:"hosts" jsonschema:"where it goes, by name; *.example.org is all names below; empty: it is a variable of commands"`
	Header    string    `json:"header,omitempty" jsonschema:"the request header that takes it, where it has hosts"`
	Format    string    `json:"format,omitempty" jsonschema:"what the header says, with {value} where the value goes"`
	CreatedAt time.Time `json:"created_at"`

	StandInHeaders []string  `json:"stand_in_headers,omitzero" jsonschema:"request headers in which the value takes the place of its stand-in; left out: the usual ones for credentials"`
	UpdatedAt      time.Time `json:"updated_at" jsonschema:"when its value was set last"`
}

// SecretList is secrets by name.
type SecretList struct {
	Items []Secret `json:"items"`
}

// SetSecret creates or replaces a secret.
type SetSecret struct {
	Value  string   `json:"value" jsonschema:"4 to 32768 bytes of text, or 8192 with hosts; nothing gives it back"`
	Hosts  []string `json:"hosts,omitempty" jsonschema:"where it goes, at most 32 names; *.example.org is all names below; left out: it is a variable of commands"`
	Header *string  `json:"header,omitempty" jsonschema:"the request header that takes it, with hosts; none: nowhere but where a program wrote the stand-in; left out: authorization"`
	// StandInHeaders is nil for the usual ones; an empty list is none.
	StandInHeaders []string `json:"stand_in_headers,omitzero" jsonschema:"request headers in which the value takes the place of its stand-in, sandpit-secret-NAME, with hosts; at most 16; left out: the usual ones for credentials"`

	Format *string `json:"format,omitempty" jsonschema:"what the header says, with {value} once, where the value goes; left out: Bearer {value} in authorization, else {value}"`
}
