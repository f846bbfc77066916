// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"slices"
	"strings"
	"sync"
)

// Set is values to be masked, in all spellings that the table of package redact has for
// [redact.Echo]. The first half of a long value counts as the value. A Set is safe for
// concurrent use, and compiles its values when there is the first text.
type Set struct {
	lower   []string // the values, as in names of headers
	values  []string
	compile sync.Once
	with    *index
}

// index is what is looked for. It is never changed.
type index struct {
	groups []*automaton // by alphabet, at most maxGroups
	firsts [256]uint8   // in which groups, by bits, a pattern begins with a character
	begin  [256]bool    // whether anything may begin with a byte
	filter
}

const maxGroups = 4 // how many alphabets there are

// star stands for each byte of a value.
const star = '*'

// New returns the set of values.
func New(values []string) *Set {
	s := &Set{}
	for _, value := range values {
		if !slices.Contains(s.values, value) {
			s.values = append(s.values, value)
			s.lower = append(s.lower, strings.ToLower(value))
		}
	}
	return s
}

func (s *Set) index() *index {
	s.compile.Do(func() { s.with = newIndex(s.values) })
	return s.with
}

func newIndex(values []string) *index {
	x := &index{}
	x.classify()
	var alphabets []alphabet
	var groups [][]pattern
	for _, value := range values {
		for _, s := range patterns(value) {
			x.add(&s)
			g := slices.Index(alphabets, s.alphabet)
			if g < 0 {
				g = len(groups)
				alphabets, groups = append(alphabets, s.alphabet), append(groups, nil)
			}
			groups[g] = append(groups[g], s)
		}
	}
	for g, all := range groups {
		a := newAutomaton(all)
		x.groups = append(x.groups, a)
		for c := range 256 {
			if a.roots[a.class[c]] != 0 {
				x.firsts[c] |= 1 << g
			}
		}
	}
	if len(values) > 0 {
		x.addEscapes()
	}
	return x
}

// add enters a pattern into the filter.
func (x *index) add(s *pattern) {
	x.filter.add(s)
	seconds := s.begins(1)
	for c := range 256 {
		if c := byte(c); s.loose(c) {
			seconds = append(seconds, c)
		}
	}
	for _, c := range s.begins(0) {
		for _, next := range seconds {
			x.pair(c, next)
		}
	}
}

// addEscapes enters what the escapes of first characters begin with.
func (x *index) addEscapes() {
	const digits = "0123456789abcdef"
	for c := range 256 {
		c := byte(c)
		if x.firsts[c] == 0 {
			continue
		}
		for _, begin := range []byte("%=") {
			x.pair(begin, digits[c>>4])
			x.pair(begin, upper(digits[c>>4]))
		}
		x.pair('\\', c)
	}
	x.pair('%', '2') // of one that is escaped
	for _, next := range []byte("uUxX01234567\\") {
		x.pair('\\', next)
	}
	for c := byte('a'); c <= 'z'; c++ {
		x.pair('&', c)
		x.pair('&', upper(c))
	}
	x.pair('&', '#')
	for _, begin := range []byte(`%=\&`) {
		x.pair(begin, 0)
	}
	for c := range 256 {
		if x.firsts[' '] != 0 {
			x.pair('+', byte(c))
		}
	}
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		c -= 'a' - 'A'
	}
	return c
}

func (x *index) pair(a, b byte) {
	x.begin[a] = true
	x.filter.pair(a, b)
}

// next returns the first place in b, from i on, where something may begin.
func (x *index) next(b []byte, i int) int {
	for ; i < len(b); i++ {
		if x.begin[b[i]] && x.may(b[i:]) {
			break
		}
	}
	return i
}

// may reports whether something may begin where b does.
func (x *index) may(b []byte) bool {
	if len(b) > 1 {
		if n := int(b[0])<<8 | int(b[1]); x.pairs[n/64]&(1<<(n%64)) == 0 {
			return false
		}
	}
	return x.passes(b)
}

// Stream returns the mask of one text.
func (s *Set) Stream() *Stream { return &Stream{set: s} }

// String returns text with the values masked.
func (s *Set) String(text string) string {
	m := Stream{set: s, held: []byte(text)}
	return string(m.End())
}

// ContainsFold reports whether text has a value in it as it is, but for case.
func (s *Set) ContainsFold(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(s.lower, func(value string) bool { return strings.Contains(text, value) })
}
