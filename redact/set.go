// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package redact

import "slices"

// Set is values to be masked: it overwrites them by stars. All occurrences are found, those
// that overlap or stand within each other included, in one pass and in time that does not
// depend on what the text or the values are. A Set never changes, and is safe for concurrent
// use.
type Set struct {
	// An automaton of Aho and Corasick: each state is a prefix of a pattern, the longest
	// one that the text read so far ends with.
	root   [256]int32 // the states of one byte
	states []state    // the first is that of nothing
	min    int        // length of the shortest pattern

	// The table of Wu and Manber, for text in which nothing begins: by a hash of three bytes,
	// how far the window of min bytes that ends with them can be moved on.
	shift []uint8 // nil: min is below blockLen
	drop  uint8   // bits of a hash that shift is too short for
}

// state is a prefix of a pattern.
type state struct {
	child, next int32 // the first that is one byte longer; the next such of the same parent; 0: none
	fail        int32 // the longest other state that this one ends with
	depth       int32 // its length
	match       int32 // length of the longest pattern that it ends with; 0: none
	last        byte
}

// Bounds of the table of shifts.
const (
	blockLen = 3
	minBits  = 14 // of its length, more where there is much to enter: else no shift would be left
	maxBits  = 17
)

// New returns the set of values as they are spelled at a place; nil, which masks nothing,
// where none of them has a byte. It keeps none of the slices.
func New(p Place, values [][]byte) *Set {
	var all []string
	for _, v := range values {
		if len(v) > 0 {
			all = append(all, p.Forms(string(v))...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return compile(all)
}

// compile returns the set of patterns, each of a byte or more.
func compile(all []string) *Set {
	total := 1
	for _, p := range all {
		total += len(p)
	}
	s := &Set{states: make([]state, 1, min(total, 1<<16)), min: len(all[0])}
	for _, p := range all {
		s.min = min(s.min, len(p))
		s.add(p)
	}
	s.link()
	s.index(all)
	return s
}

// add enters a pattern into the tree.
func (s *Set) add(p string) {
	at := int32(0)
	for i := range len(p) {
		c := p[i]
		to := s.child(at, c)
		if to == 0 {
			to = int32(len(s.states))
			st := state{depth: s.states[at].depth + 1, last: c}
			if at == 0 {
				s.root[c] = to
			} else {
				st.next = s.states[at].child
				s.states[at].child = to
			}
			s.states = append(s.states, st)
		}
		at = to
	}
	s.states[at].match = int32(len(p))
}

func (s *Set) child(at int32, c byte) int32 {
	if at == 0 {
		return s.root[c]
	}
	for k := s.states[at].child; k != 0; k = s.states[k].next {
		if s.states[k].last == c {
			return k
		}
	}
	return 0
}

// link finds, breadth first, what each state falls back to.
func (s *Set) link() {
	queue := make([]int32, 0, len(s.states))
	for _, k := range s.root {
		if k != 0 {
			queue = append(queue, k)
		}
	}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for k := s.states[at].child; k != 0; k = s.states[k].next {
			f := s.step(s.states[at].fail, s.states[k].last)
			s.states[k].fail = f
			s.states[k].match = max(s.states[k].match, s.states[f].match)
			queue = append(queue, k)
		}
	}
}

// step is the state after one byte more.
func (s *Set) step(at int32, c byte) int32 {
	for at != 0 {
		if k := s.child(at, c); k != 0 {
			return k
		}
		at = s.states[at].fail
	}
	return s.root[c]
}

// index fills the table of shifts.
func (s *Set) index(all []string) {
	if s.min < blockLen {
		return
	}
	bits, blocks := uint8(minBits), len(all)*(s.min-blockLen+1)
	for bits < maxBits && blocks > 1<<bits/4 {
		bits++
	}
	s.drop = 32 - bits
	s.shift = slices.Repeat([]uint8{uint8(min(s.min-blockLen+1, 255))}, 1<<bits)
	for _, p := range all {
		for i := range s.min - blockLen + 1 {
			h := block([]byte(p[i:i+blockLen])) >> s.drop
			s.shift[h] = min(s.shift[h], uint8(min(s.min-blockLen-i, 255)))
		}
	}
}

// block returns the hash of the three bytes that b begins with.
func block(b []byte) uint32 {
	_ = b[2]
	return (uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16) * 0x9e3779b1
}

// skip returns the first place from i on where a pattern may begin, or where too little is
// left of b to tell.
func (s *Set) skip(b []byte, i int) int {
	if s.shift == nil {
		return i
	}
	shift, drop := s.shift, s.drop&31
	for i+s.min <= len(b) {
		d := shift[block(b[i+s.min-blockLen:])>>drop&uint32(len(shift)-1)]
		if d == 0 {
			return i
		}
		i += int(d)
	}
	return i
}

// Bytes masks b in place, and reports whether anything was found.
func (s *Set) Bytes(b []byte) bool {
	st := Stream{set: s}
	st.Mask(b, 0)
	return st.found
}

// String returns text with the values masked.
func (s *Set) String(text string) string {
	if s == nil || len(text) < s.min {
		return text
	}
	b := []byte(text)
	if !s.Bytes(b) {
		return text
	}
	return string(b)
}
