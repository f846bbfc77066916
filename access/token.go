// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"log/slog"
	"time"
	"unicode"
	"unicode/utf8"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// DefaultProject is the project of all that names none.
const DefaultProject = "default"

// Bounds of the names that tokens carry.
const (
	MaxTokenName = 64 // characters
	MaxProject   = 63 // bytes, as a DNS label
)

// Bounds of what a rotation leaves of the secret before it.
const (
	DefaultGrace  = time.Hour
	MaxGrace      = 30 * 24 * time.Hour
	MaxOldSecrets = 8 // of one token, that are valid still
)

// Token is the record of a bearer token: everything but the secret, of which
// only the hash is kept. A rotation gives it another secret; those before it, also kept by their
// hashes alone, may stay valid for a while.
type Token struct {
	ID         string // of the form of a sandbox id
	Project    string
	Name       string // unique in the project
	Hash       []byte // SHA-256 of the secret, 32 bytes
	Scopes     []Scope
	Profile    string // of MCP, which its holder gets; empty: the server's own
	CreatedAt  time.Time
	LastUsedAt time.Time // exact to about a minute; zero: never
	ExpiresAt  time.Time // zero: never
	OldUntil   time.Time // until when the last of its old secrets is valid; zero: a rotation left none
}

// Expired reports whether t is past its time at now.
func (t *Token) Expired(now time.Time) bool {
	return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt)
}

// LogValue identifies the token in a log, without its hash.
func (t Token) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", t.ID), slog.String("project", t.Project), slog.String("name", t.Name))
}

// CheckTokenName checks a token's name: 1 to [MaxTokenName] printable
// characters. The error is Invalid and about field.
func CheckTokenName(field, name string) error {
	if name == "" {
		return fault.InvalidField(field, "is empty; a token's name has 1 to %d printable characters", MaxTokenName)
	}
	n := 0
	for i, r := range name {
		if n++; n > MaxTokenName {
			return fault.InvalidField(field, "is longer than %d characters (it starts with %q)", MaxTokenName, sandbox.Clip(name, 40))
		}
		if !unicode.IsPrint(r) || (r == utf8.RuneError && !validAt(name, i)) {
			return fault.InvalidField(field, "%q holds a character that cannot be printed", sandbox.Clip(name, 80))
		}
	}
	return nil
}

// validAt distinguishes a replacement character that was written from one that stands for broken
// UTF-8.
func validAt(s string, i int) bool {
	_, size := utf8.DecodeRuneInString(s[i:])
	return size > 1
}

// CheckProject checks a project's name: 1 to [MaxProject] lower-case letters,
// digits and dashes, no dash at either end, so that it can stand in a host name
// and in a path. The error is Invalid and about field.
func CheckProject(field, project string) error {
	ok := project != "" && len(project) <= MaxProject && project[0] != '-' && project[len(project)-1] != '-'
	for i := 0; ok && i < len(project); i++ {
		c := project[i]
		ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
	}
	if !ok {
		return fault.InvalidField(field, "%q is not a valid project name: 1 to %d lower-case letters, digits and dashes, no dash at either end",
			sandbox.Clip(project, 80), MaxProject)
	}
	return nil
}
