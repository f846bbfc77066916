// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package deep

// filter passes over most of a text in which no pattern begins, by the first two bytes and
// the first three characters.
type filter struct {
	pairs [1 << 16 / 64]uint64
	three [1 << threeBits / 64]uint64
	short bool      // some pattern has less than three characters that count
	all   bool      // some has none
	kinds [256]byte // what a character counts as: 0 for nothing, 1 for what may begin an escape
}

const (
	threeBits = 16
	maxLook   = 32 // bytes that are looked at
)

// blank reports whether a character counts for nothing in a filter, in patterns and in the text
// alike: it may stand between two, is part of what does, or may begin an escape.
func blank(c byte) bool {
	switch c {
	case 0, '\r', '\n', '\t', ' ', ':', ',', '-', ';', '|', '_', '/', '0', 'x', 'X':
		return true
	}
	return beginsEscape(c)
}

func (f *filter) pair(a, b byte) {
	n := int(a)<<8 | int(b)
	f.pairs[n/64] |= 1 << (n % 64)
}

// classify fills in the kinds.
func (f *filter) classify() {
	for c := range 256 {
		switch c := byte(c); {
		case beginsEscape(c):
			f.kinds[c] = 1
		case !blank(c):
			f.kinds[c] = max(lower(c), 2)
		}
	}
}

// add enters a pattern by the characters that count of it, or of what is as good as all of it.
func (f *filter) add(s *pattern) {
	text := s.text[:s.enough()]
	key, n := uint32(0), 0
	for i := 0; i < len(text) && n < 3; i++ {
		if f.kinds[text[i]] > 1 {
			key, n = key<<8|uint32(f.kinds[text[i]]), n+1
		}
	}
	f.all = f.all || n == 0
	f.short = f.short || n < 3
	at := hash(key)
	f.three[at/64] |= 1 << (at % 64)
}

func hash(key uint32) uint32 { return key * 0x9e3779b1 >> (32 - threeBits) }

// passes reports whether a pattern may begin at the beginning of b.
func (f *filter) passes(b []byte) bool {
	if f.all || len(b) < maxLook {
		return true
	}
	key, n := uint32(0), 0
	for i := 0; i < maxLook-1; i++ {
		kind := f.kinds[b[i]]
		if kind == 1 && mayEscape(b[i], b[i+1]) {
			return true // it is read for sure later
		}
		if kind > 1 {
			key, n = key<<8|uint32(kind), n+1
			if n < 3 && !f.short {
				continue
			}
			at := hash(key)
			if found := f.three[at/64]&(1<<(at%64)) != 0; found || n == 3 {
				return found
			}
		}
	}
	return true
}

// mayEscape reports whether a and b may begin an escape.
func mayEscape(a, b byte) bool {
	switch a {
	case '%', '=':
		return digit(b) < 16 || b == '\r' || b == '\n' || b == 0
	case '&':
		return b == '#' || 'a' <= lower(b) && lower(b) <= 'z' || b == 0
	case '\\':
		return true
	}
	return false
}
