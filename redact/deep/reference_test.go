// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/internal/skiptest"
)

// reference masks values as a Stream does, but looks for each spelling at each byte by itself. It
// is as slow as it is simple.
type reference []pattern

func newReference(values []string) (r reference) {
	for _, value := range values {
		r = append(r, patterns(value)...)
	}
	return r
}

func (r reference) text(text string) string {
	b, out := []byte(text), []byte(text)
	for i := range b {
		n := 0
		look := func(c byte, first int) {
			for k := range r {
				s := &r[k]
				if !s.is(c, 0) {
					continue
				}
				if end, depth := s.match(b[i:], first); depth >= s.enough() {
					n = max(n, end)
				}
			}
		}
		look(b[i], 1)
		e := unescape(b[i:])
		for k := range e.n {
			look(e.chars[k], int(e.ends[k]))
		}
		for k := i; k < i+n; k++ {
			out[k] = star
		}
	}
	return string(out)
}

// match returns how many bytes at the beginning of b are written as the text begins, and how many
// characters of the text these are, where first bytes stand for its first character.
func (s *pattern) match(b []byte, first int) (n, depth int) {
	at := []int{first}
	for i := 1; i < len(s.text); i++ {
		var next []int
		for _, from := range at {
			next = s.step(b, from, i, next)
		}
		if len(next) == 0 {
			return slices.Max(at), i
		}
		at = next
	}
	return slices.Max(at), len(s.text)
}

// step adds where a character of the text ends, over a gap from a place on.
func (s *pattern) step(b []byte, from, i int, next []int) []int {
	add := func(at int) {
		if !slices.Contains(next, at) {
			next = append(next, at)
		}
	}
	for range maxGap + 1 {
		if from == len(b) {
			break
		}
		if s.is(b[from], i) {
			add(from + 1)
		}
		e := unescape(b[from:])
		for k := range e.n {
			if s.is(e.chars[k], i) {
				add(from + int(e.ends[k]))
			}
		}
		n, _ := s.gap(b[from:], &e)
		if n == 0 {
			break
		}
		from += n
	}
	return next
}

// piece is something that answers may have in them: a spelling of a value, the beginning or the end of one, or neither.
func piece(r *rand.Rand, values []string) string {
	value := values[r.IntN(len(values))]
	switch r.IntN(8) {
	case 0:
		return []string{"%", `\`, "&", "=", "+", "0x", "%25", "&amp;", "=\r\n", "\\\\", "\x00", " ", ",", "\n", "41", "u00", "#"}[r.IntN(17)]
	case 1:
		b := make([]byte, r.IntN(4))
		for i := range b {
			b[i] = value[r.IntN(len(value))]
		}
		return string(b)
	}
	all := chosen(value)
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	text := all[names[r.IntN(len(names))]].Text
	if r.IntN(3) == 0 {
		text = value
	}
	switch r.IntN(4) {
	case 0:
		return text[:r.IntN(len(text)+1)]
	case 1:
		return text[r.IntN(len(text)+1):]
	}
	return text
}

// anyValue makes values that resemble themselves.
func anyValue(r *rand.Rand) string {
	letters := []string{"ab", "abc", `a\`, "a%2", "01x", "sk-ABCdef0123456789_", `&#;am`, "a b,", "+/-_="}[r.IntN(9)]
	b := make([]byte, 4+r.IntN(40))
	period := 1 + r.IntN(len(b))
	for i := range b {
		if b[i] = letters[r.IntN(len(letters))]; i >= period && r.IntN(30) > 0 {
			b[i] = b[i-period]
		}
	}
	return string(b)
}

func TestAStreamMasksAsTheReference(t *testing.T) {
	skiptest.WithShort(t, "many random bodies are compared")
	for seed := range 1500 {
		r := rand.New(rand.NewPCG(uint64(seed), 19))
		var values []string
		for range 1 + r.IntN(3) {
			values = append(values, anyValue(r))
		}
		if r.IntN(4) == 0 { // one that another begins with or has in it
			values = append(values, values[0]+anyValue(r), "x"+values[0][:len(values[0])-1]+"yz")
		}
		var text strings.Builder
		for range 1 + r.IntN(6) {
			text.WriteString(piece(r, values))
		}
		whole := text.String()
		v := New(values)
		got, want := v.String(whole), newReference(values).text(whole)
		if got != want {
			t.Errorf("%d: %q in %q:\n%q, not\n%q", seed, values, whole, got, want)
		}
		var parts bytes.Buffer
		m := v.Stream()
		for rest := whole; rest != ""; {
			n := min(len(rest), 1+r.IntN(1+r.IntN(40)))
			parts.Write(m.Push([]byte(rest[:n])))
			rest = rest[n:]
		}
		parts.Write(m.End())
		if parts.String() != got {
			t.Errorf("%d: %q in %q, divided:\n%q, not\n%q", seed, values, whole, parts.String(), got)
		}
	}
}

func TestHalfOfAValueIsMaskedWhateverFollows(t *testing.T) {
	for _, value := range []string{"x0xx11xxx0xx11xxx0", "0-0-0-0-0-abcdefgh", "//////////abcdefghi", "%%%%%%%%%%abcdefghi"} {
		v := New([]string{value})
		half := value[:len(value)/2+1]
		for _, after := range []string{" and something else that is longer than that", "9999999999999999999999999999999999"} {
			if got := v.String(half + after); !strings.HasPrefix(got, strings.Repeat("*", len(value)/2)) {
				t.Errorf("%q in %q: %q", half, half+after, got)
			}
		}
	}
}
