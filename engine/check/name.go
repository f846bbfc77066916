// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"sandpit.dev/sandbox"
)

// Bounds of names and of the labels of a process.
const (
	MaxName   = 64 // characters
	MaxLabels = 16
)

// Name checks the name of a process or a shell: 1 to MaxName printable characters without a slash.
func (k *Fields) Name(field, name string) {
	if !ValidName(name) {
		k.Bad(field, "%q is not a valid name: 1 to %d printable characters without / and without a blank at either end", sandbox.Clip(name, 80), MaxName)
	}
}

// ValidName reports whether Fields.Name accepts the name.
func ValidName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= MaxName*utf8.UTFMax && utf8.ValidString(name) &&
		utf8.RuneCountInString(name) <= MaxName && strings.TrimSpace(name) == name &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == '/' || !unicode.IsPrint(r) })
}

// Labels checks the labels of a process.
func (k *Fields) Labels(field string, m map[string]string) {
	if len(m) > MaxLabels {
		k.Bad(field, "has %d labels, more than %d", len(m), MaxLabels)
		return
	}
	k.Metadata(field, m)
}
