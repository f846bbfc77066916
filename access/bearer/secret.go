// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bearer

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"

	"sandpit.dev/fault"
)

// Secret is the text of a token. Printing or logging it yields a placeholder; only
// [Secret.Reveal] returns the text. The zero Secret is not a token.
type Secret struct{ text string }

// NewSecret wraps a text that must not be shown.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text: for the one answer that hands it to its owner.
func (s Secret) Reveal() string { return s.text }

const redacted = "[redacted]"

// String hides the text.
func (s Secret) String() string { return redacted }

// Format hides the text from every verb of package fmt.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue hides the text from a log.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the text from JSON and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// The form of the secrets that we make.
const (
	prefix       = "spt_"
	secretLength = 40 // letters after the prefix
	alphabet     = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// newSecret makes a secret: the prefix, by which scanners for leaked secrets
// know it, and 40 letters, each of them equally likely.
func newSecret() Secret {
	out := make([]byte, 0, len(prefix)+secretLength)
	out = append(out, prefix...)
	var random [64]byte
	for len(out) < cap(out) {
		_, _ = rand.Read(random[:]) // never fails, see crypto/rand
		for _, b := range random {
			// 248 is four times 62; what lies above would favour some letters.
			if b < 248 && len(out) < cap(out) {
				out = append(out, alphabet[b%62])
			}
		}
	}
	return Secret{string(out)}
}

// ours reports whether a text has the form of [newSecret].
func ours(text string) bool {
	if len(text) != len(prefix)+secretLength || text[:len(prefix)] != prefix {
		return false
	}
	for i := len(prefix); i < len(text); i++ {
		c := text[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

type digest [sha256.Size]byte

func digestOf(text string) digest { return sha256.Sum256([]byte(text)) }

// Bounds of an administrator's own token, in characters.
const (
	MinAdminToken = 16
	MaxAdminToken = 256
)

// CheckAdminToken checks a token that an administrator chose: 16 to 256
// printable characters, no space at either end. The error is Invalid, names the
// bound and never shows the token.
func CheckAdminToken(text string) error {
	n := utf8.RuneCountInString(text)
	if n < MinAdminToken || n > MaxAdminToken {
		return adminTokenFault("has %d characters; it needs %d to %d", n, MinAdminToken, MaxAdminToken)
	}
	if !utf8.ValidString(text) {
		return adminTokenFault("is not UTF-8")
	}
	for i, r := range []rune(text) {
		if !unicode.IsPrint(r) {
			return adminTokenFault("has a character that cannot be printed at position %d", i+1)
		}
		if r == ' ' && (i == 0 || i == n-1) {
			return adminTokenFault("begins or ends with a space, which a header cannot carry")
		}
	}
	return nil
}

func adminTokenFault(format string, args ...any) error {
	return fault.InvalidField("SANDPIT_ADMIN_TOKEN", format, args...).
		WithRemedy("set it to %d to %d printable characters, or unset it and one is made", MinAdminToken, MaxAdminToken)
}

// formed reports whether a text begins as the tokens do that servers make.
func formed(text string) bool {
	return strings.HasPrefix(text, prefix) || strings.HasPrefix(text, sandboxPrefix)
}

// signed reports whether a text has the form of a JSON Web Token.
func signed(text string) bool { return strings.HasPrefix(text, "eyJ") && strings.Count(text, ".") == 2 }

// Ours reports whether a text has the form of a token that this server takes, valid or not: who asks learns nothing of which
// ones there are. Where the operator's token is not of the form that servers make, any text without a form is such a one.
func (a *Authority) Ours(text string) bool {
	return formed(text) || a.another.text && !signed(text) || a.another.signed && signed(text)
}
