// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"sandpit.dev/redact"
)

// pattern is a text that a value is looked for as. Each of its characters may be escaped, and
// there may be gaps between them.
type pattern struct {
	text string
	alphabet
	sure int // how many characters make it unlikely to be anything else
}

// alphabet is which characters are the same, and which may stand between those of a text.
type alphabet struct {
	fold  bool // letters of both cases are the same
	url   bool // so are + and -, / and _
	space bool // spaces may stand between
	marks bool // so may what lists of bytes have there
}

// Bounds of the patterns.
const (
	sure       = 4       // bytes of a value: what may be the beginning of one, and is as long, is kept back until it is seen what it is
	maxLong    = 1 << 10 // bytes of a value that is looked for in all patterns
	maxGap     = 16      // characters between two of a text
	maxBreak   = 8       // bytes of a line's end behind a =
	maxWritten = 12      // bytes for a character on average, of what is kept back,
	maxSlack   = 256     // and more at the least
)

// patterns returns what a value is looked for as. Of each encoding of groups these are the characters
// that the value alone decides, wherever in a group it begins.
func patterns(value string) []pattern {
	var out []pattern
	add := func(text string, sure int, a alphabet) {
		if len(text) >= sure && !slices.ContainsFunc(out, func(s pattern) bool { return s.text == text && s.alphabet == a }) {
			out = append(out, pattern{text, a, sure})
		}
	}
	plain := alphabet{fold: true}
	cores := func(value string) (all []string) {
		for shift := range 3 {
			core := base64Core(value, shift)
			// Where few characters stand for all of it, case keeps them from being any word.
			add(core, sure, alphabet{fold: len(core) >= 2*sure, url: true, space: true})
			all = append(all, core)
		}
		return all
	}
	add(value, sure, plain)
	if strings.Contains(value, "'") { // as shells quote it
		add(strings.ReplaceAll(value, "'", `'\''`), sure, plain)
		add(strings.ReplaceAll(value, "'", `'"'"'`), sure, plain)
	}
	once := cores(value)
	if len(value) > maxLong {
		return out
	}
	wide := utf16le(value)
	if !ascii(value) { // fold is of ASCII alone
		for _, v := range []string{value, strings.ToLower(value), strings.ToUpper(value)} {
			add(v, sure, plain)
			add(latin1(v), sure, plain)
			add(strings.ReplaceAll(utf16le(v), "\x00", ""), sure, plain)
			add(strings.ReplaceAll(swapped(utf16le(v)), "\x00", ""), sure, plain)
		}
	}
	cores(strings.TrimSuffix(wide, "\x00"))
	for _, core := range once {
		cores(core)
	}
	digits := alphabet{fold: true, space: true, marks: true}
	add(hex.EncodeToString([]byte(value)), 2*sure, digits)
	add(hex.EncodeToString([]byte(strings.TrimSuffix(wide, "\x00"))), 4*sure, digits)
	for shift := range 5 {
		add(base32Core(value, shift), 8*sure/5, alphabet{fold: true, url: true, space: true}) // of which base32 has no character
	}
	add(decimals(value), 3*sure, digits)
	return out
}

// base64Core is what base64 makes of a value in the midst of other bytes, shift of them
// in the same group before it: those characters that only the value decides.
func base64Core(value string, shift int) string {
	return redact.Core(base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift)+value)), 6, shift, len(value))
}

func base32Core(value string, shift int) string {
	return redact.Core(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(strings.Repeat("\x00", shift)+value)), 5, shift, len(value))
}

// decimals lists a value's bytes as numbers.
func decimals(value string) string {
	var out []byte
	for i := range len(value) {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendUint(out, uint64(value[i]), 10)
	}
	return string(out)
}

// utf16le returns a value in UTF-16, the lower bytes first.
func utf16le(value string) string {
	var out []byte
	for _, u := range utf16.Encode([]rune(value)) {
		out = append(out, byte(u), byte(u>>8))
	}
	return string(out)
}

// swapped is UTF-16 with its bytes the other way round.
func swapped(wide string) string {
	out := []byte(wide)
	for i := 0; i+1 < len(out); i += 2 {
		out[i], out[i+1] = out[i+1], out[i]
	}
	return string(out)
}

// latin1 is a value with a byte for each of its characters, as escapes number them; "" if some have no such number.
func latin1(value string) string {
	var out []byte
	for _, r := range value {
		if r > 0xff {
			return ""
		}
		out = append(out, byte(r))
	}
	return string(out)
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// is reports whether c stands for a character of the text.
func (s *pattern) is(c byte, i int) bool {
	want := s.text[i]
	switch {
	case c == want:
		return true
	case s.fold && lower(c) == lower(want):
		return true
	case s.url:
		return want == '+' && c == '-' || want == '/' && c == '_'
	case s.marks && want == ',':
		return c == ' ' || c == ';' || c == '\n'
	}
	return false
}

// begins are the characters that the text may have at a place.
func (s *pattern) begins(i int) (all []byte) {
	for c := range 256 {
		if s.is(byte(c), i) {
			all = append(all, byte(c))
		}
	}
	return all
}

// parts reports whether c may stand between two characters of the text: a line may break anywhere,
// and UTF-16 has NULs.
func (a alphabet) parts(c byte) bool {
	switch c {
	case 0, '\r', '\n', '\t':
		return true
	case ' ':
		return a.space
	case ':', ',', '-', ';', '|':
		return a.marks
	}
	return false
}

// loose reports whether c may begin more than a character of the text.
func (a alphabet) loose(c byte) bool {
	return beginsEscape(c) || a.parts(c) || a.marks && c == '0'
}

// gap returns how many bytes at the beginning of b may stand between two characters, where e is
// what they are read as if they are an escape. more: b ends before that is clear.
func (a alphabet) gap(b []byte, e *escaped) (n int, more bool) {
	c := b[0]
	if a.parts(c) {
		return 1, false
	}
	if a.marks && c == '0' { // of 0x41
		if len(b) > 1 && lower(b[1]) == 'x' {
			return 2, false
		}
		return 0, len(b) == 1
	}
	if c == '=' { // a line that quoted-printable broke
		for i := 1; i <= maxBreak; i++ {
			switch {
			case i == len(b):
				return 0, true
			case b[i] == '\n':
				return i + 1, false
			case b[i] != '\r' && b[i] != 0:
				return 0, false
			}
		}
		return 0, false
	}
	for i := range e.n {
		if a.parts(e.chars[i]) {
			return int(e.ends[i]), false
		}
	}
	return 0, e.more
}

// enough returns how many of the text's characters are as good as all of it.
func (s *pattern) enough() int {
	if half := max((len(s.text)+1)/2, 2*s.sure); half < len(s.text) {
		return half
	}
	return len(s.text)
}
