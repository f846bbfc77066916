// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// veil finds values in text, however they are written there: as they are, in base64
// wherever it begins, and either with any of the characters percent-encoded or escaped as JSON
// and HTML do. The first half of a long value counts as the value. It is never changed, and safe
// for concurrent use.
type veil struct {
	lower []string      // the values, as in names of headers
	first [256][]string // what to find, by the byte that a way to write it may begin with
	begin [256]bool     // whether there is any
	pairs [1 << 16 / 64]uint64
}

// hidden is what stands for each byte of a value.
const hidden = '*'

// sure is how many bytes of a value make it unlikely to be anything else: what may be the
// beginning of one, and is as long, is kept back until it is seen what it is.
const sure = 4

// telling is how many bytes the first half of a value has at least that counts as the value.
const telling = 8

func newVeil(values []string) *veil {
	v := &veil{}
	seen := make(map[string]bool)
	add := func(text string) {
		if len(text) >= sure && !seen[text] {
			seen[text] = true
			v.add(text)
		}
	}
	for _, value := range values {
		v.lower = append(v.lower, strings.ToLower(value))
		add(value)
		for shift := range 3 {
			core := base64Core(value, shift)
			add(core)
			add(strings.NewReplacer("+", "-", "/", "_").Replace(core))
		}
	}
	return v
}

// base64Core is what base64 makes of a value in the midst of other bytes, shift of them
// in the same group before it: those characters that only the value decides.
func base64Core(value string, shift int) string {
	text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + value))
	begin := []int{0, 2, 3}[shift]
	end := (shift + len(value)) * 8 / 6
	if begin >= end {
		return ""
	}
	return text[begin:end]
}

func (v *veil) add(text string) {
	all := ways()
	for _, w := range all[text[0]] {
		if !slices.Contains(v.first[w[0]], text) {
			v.first[w[0]] = append(v.first[w[0]], text)
			v.begin[w[0]] = true
		}
		if len(w) > 1 {
			v.pair(w[0], w[1])
			v.pair(w[0], upper(w[1]))
			continue
		}
		for _, next := range all[text[1]] {
			v.pair(w[0], next[0])
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
	n := int(a)<<8 | int(b)
	v.pairs[n/64] |= 1 << (n % 64)
}

// next gives the first place in b, from i on, where something may begin.
func (v *veil) next(b []byte, i int) int {
	for ; i < len(b); i++ {
		if !v.begin[b[i]] {
			continue
		}
		if i+1 == len(b) {
			break
		}
		if n := int(b[i])<<8 | int(b[i+1]); v.pairs[n/64]&(1<<(n%64)) != 0 {
			break
		}
	}
	return i
}

// ways are those to write each byte.
var ways = sync.OnceValue(func() *[256][]string {
	var all [256][]string
	for c := range all {
		all[c] = waysOf(byte(c))
	}
	return &all
})

// waysOf are the ways to write a byte, itself first. Of those with letters all cases
// count.
func waysOf(c byte) []string {
	out := []string{string([]byte{c})}
	for _, form := range []string{"%%%02x", `\u00%02x`, `\x%02x`, "&#%d;", "&#x%x;"} {
		out = append(out, fmt.Sprintf(form, c))
	}
	switch c {
	case '"', '\\', '/', '\'':
		out = append(out, `\`+string(c))
	case '\t':
		out = append(out, `\t`)
	case ' ':
		out = append(out, "+")
	}
	if name := map[byte]string{'"': "quot", '&': "amp", '<': "lt", '>': "gt", '\'': "apos"}[c]; name != "" {
		out = append(out, "&"+name+";")
	}
	return out
}

// match tells how many bytes at the beginning of b are written as text begins, and how many
// of text these are. If b ends before it is clear whether there are more, more is true.
func match(b []byte, text string) (n, depth int, more bool) {
	// Where the next byte may begin: there is more than one place only after a byte
	// that is also the beginning of another way to write it.
	var at, next [8]int
	places := 1
	all := ways()
	for i := range len(text) {
		found := 0
		for _, from := range at[:places] {
			rest := b[from:]
			if len(rest) == 0 {
				more = true
				continue
			}
			for k, w := range all[text[i]] {
				if w[0] != rest[0] {
					continue
				}
				switch m := min(len(w), len(rest)); {
				case k > 0 && !equalFold(rest[:m], w[:m]):
				case m < len(w):
					more = true
				case found < len(next) && !slices.Contains(next[:found], from+m):
					next[found] = from + m
					found++
				}
			}
		}
		if found == 0 {
			return n, i, more
		}
		at, places = next, found
		n = slices.Max(at[:places])
	}
	return n, len(text), more
}

// plainlyNot tells quickly, of most that only begins like text, that it is not.
func plainlyNot(b []byte, text string) bool {
	const special = `%\&+` // with which other ways to write a byte begin
	for i := range min(len(b), sure) {
		if strings.IndexByte(special, b[i]) >= 0 {
			return false
		}
		if b[i] != text[i] {
			return true
		}
	}
	return false
}

// told tells whether the first depth bytes of text are as good as all of it.
func told(text string, depth int) bool {
	return depth == len(text) || depth >= telling && depth*2 >= len(text)
}

func equalFold(b []byte, lower string) bool {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
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
		open := false
		for _, text := range v.first[b[i]] {
			if plainlyNot(b[i:], text) {
				continue
			}
			n, depth, more := match(b[i:], text)
			if told(text, depth) && i+n > m.mask {
				m.settle(done, i)
				done, m.mask = i, i+n
			}
			open = open || more
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
		for _, text := range m.veil.first[m.held[i]] {
			if _, depth, more := match(m.held[i:], text); more && depth >= sure {
				return nil
			}
		}
	}
	m.settle(0, len(m.held))
	m.gone = len(m.held)
	return m.out
}
