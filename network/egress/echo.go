// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"slices"
	"strings"
)

// veil finds values in text, in all their spellings. The first half of a long value counts as the
// value. It is never changed, and safe for concurrent use.
type veil struct {
	lower []string         // the values, as in names of headers
	first [256][]*spelling // what to find, by the characters that it may begin with
	begin [256]bool        // whether anything may begin with a byte
	filter
}

// hidden is what stands for each byte of a value.
const hidden = '*'

func newVeil(values []string) *veil {
	v := &veil{}
	v.classify()
	seen := make(map[string]bool)
	for _, value := range values {
		if seen[value] {
			continue
		}
		seen[value] = true
		v.lower = append(v.lower, strings.ToLower(value))
		for _, s := range spellings(value) {
			v.add(&s)
		}
	}
	if len(v.lower) > 0 {
		v.addEscapes()
	}
	return v
}

func (v *veil) add(s *spelling) {
	v.filter.add(s.text)
	seconds := s.begins(1)
	for c := range 256 {
		if c := byte(c); s.loose(c) {
			seconds = append(seconds, c)
		}
	}
	for _, c := range s.begins(0) {
		v.first[c] = append(v.first[c], s)
		for _, next := range seconds {
			v.pair(c, next)
		}
	}
}

// addEscapes enters what the escapes of first characters begin with.
func (v *veil) addEscapes() {
	const digits = "0123456789abcdef"
	for c := range 256 {
		c := byte(c)
		if len(v.first[c]) == 0 {
			continue
		}
		for _, begin := range []byte("%=") {
			v.pair(begin, digits[c>>4])
			v.pair(begin, upper(digits[c>>4]))
		}
		v.pair('\\', c)
	}
	v.pair('%', '2') // of one that is escaped
	for _, next := range []byte("uUxX01234567\\") {
		v.pair('\\', next)
	}
	for c := byte('a'); c <= 'z'; c++ {
		v.pair('&', c)
		v.pair('&', upper(c))
	}
	v.pair('&', '#')
	for _, begin := range []byte(`%=\&`) {
		v.pair(begin, 0)
	}
	for c := range 256 {
		if len(v.first[' ']) > 0 {
			v.pair('+', byte(c))
		}
	}
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		c -= 'a' - 'A'
	}
	return c
}

func (v *veil) pair(a, b byte) {
	v.begin[a] = true
	v.filter.pair(a, b)
}

// next gives the first place in b, from i on, where something may begin.
func (v *veil) next(b []byte, i int) int {
	for ; i < len(b); i++ {
		if !v.begin[b[i]] {
			continue
		}
		if i+1 < len(b) {
			if n := int(b[i])<<8 | int(b[i+1]); v.pairs[n/64]&(1<<(n%64)) == 0 {
				continue
			}
		}
		if v.passes(b[i:]) {
			break
		}
	}
	return i
}

// at looks for values at the beginning of b. It returns how many bytes there are part of
// one. Where b ends before it is clear whether there are more, open is true, and likely if enough
// of a value is there to be sure.
func (v *veil) at(b []byte) (n int, open, likely bool) {
	look := func(c byte, first int) {
		for _, s := range v.first[c] {
			end, depth, more := s.match(b, first)
			if s.tells(depth) {
				n = max(n, end)
			}
			open = open || more
			likely = likely || more && depth >= s.sure
		}
	}
	look(b[0], 1)
	if beginsEscape(b[0]) {
		e := unescape(b)
		open = open || e.more
		for i := range e.n {
			look(e.chars[i], e.ends[i])
		}
	}
	return n, open, likely
}

// text gives s with all values in it hidden.
func (v *veil) text(s string) string {
	m := masker{veil: v, held: []byte(s)}
	return string(m.rest())
}

// inName tells whether the name of a header has a value, in whatever case.
func (v *veil) inName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(v.lower, func(value string) bool { return strings.Contains(name, value) })
}

// masker hides values in what is pushed through it, wherever that is divided. What its
// methods give is valid until the next call.
type masker struct {
	veil *veil
	held []byte // that may be the beginning of a value
	gone int    // how many of held were let go already
	mask int    // how many of held are part of a value
	out  []byte
}

// push takes more of the text, and gives what is clear.
func (m *masker) push(b []byte) []byte {
	m.held = append(m.held, b...)
	m.scan(false)
	return m.out
}

// rest ends the text, and gives what is left.
func (m *masker) rest() []byte {
	m.scan(true)
	return m.out
}

// waits tells whether anything is kept back.
func (m *masker) waits() bool { return m.gone < len(m.held) }

// scan moves from held to out what is clear; at the end all of it.
func (m *masker) scan(end bool) {
	b, v := m.held, m.veil
	m.out = m.out[:0]
	i, done := 0, 0
	for {
		i = v.next(b, i)
		if i == len(b) {
			break
		}
		n, open, _ := v.at(b[i:])
		if n > 0 && i+n > m.mask {
			m.settle(done, i)
			done, m.mask = i, i+n
		}
		if open && !end {
			break
		}
		i++
	}
	m.settle(done, i)
	m.held = append(m.held[:0], b[i:]...)
	m.gone = max(m.gone-i, 0)
	m.mask = max(m.mask-i, 0)
}

// settle gives out what is held between two places.
func (m *masker) settle(from, to int) {
	from = max(from, m.gone)
	for ; from < min(to, m.mask); from++ {
		m.out = append(m.out, hidden)
	}
	if from < to {
		m.out = append(m.out, m.held[from:to]...)
	}
}

// ease gives what is kept back, unless it is surely the beginning of a value. Should it be one
// nonetheless, what comes later of it is hidden.
func (m *masker) ease() []byte {
	m.out = m.out[:0]
	for i := range m.held {
		if _, _, likely := m.veil.at(m.held[i:]); likely {
			return nil
		}
	}
	m.settle(0, len(m.held))
	m.gone = len(m.held)
	return m.out
}
