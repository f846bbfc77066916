// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package redact

// Spelling is a way in which a value may be written.
type Spelling int

// The spellings; the table says what each is.
const (
	Plain Spelling = iota
	Trimmed
	Terminal
	Case
	MixedCase
	Broken
	Quoted
	QuotedASCII
	Shell
	HTML
	Percent
	Escaped
	Nested
	Hex
	HexList
	Base64
	Base64Lines
	Base64AnyLines
	Base64Twice
	Base32
	Wide
	Cut
	Half
	Slice
	spellings
)

// Spellings returns all spellings, in the order of their constants.
func Spellings() []Spelling {
	all := make([]Spelling, spellings)
	for i := range all {
		all[i] = Spelling(i)
	}
	return all
}

// String says how the value is written.
func (s Spelling) String() string { return table[s].text }
