// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"cmp"
	"slices"
)

// maxTrunk is how many characters of a pattern have states of their own. More of it is text that is
// compared, so that memory is a few times that of the patterns.
const maxTrunk = 32

// automaton finds the patterns of one alphabet in canonical characters: after each it is in the state of
// the longest beginning of a pattern that the characters end with (Aho and Corasick). A pattern
// that is longer than the trunk is followed on beside it as a limb.
type automaton struct {
	alphabet
	class  [256]byte // the canonical character of a byte
	roots  [256]uint32
	nodes  []node // 0 is the root's
	tables [][256]uint32
	limbs  []limb
}

// node is a beginning of patterns of at most maxTrunk characters. The state that follows on label is
// the next one.
type node struct {
	fail  uint32 // of the longest shorter beginning that this one ends with
	back  uint32 // the first in the chain of those that label does not lead on from in the same way
	table uint32 // 1 + where all that follows is, of a state that more than one character leads on from
	limb  uint32 // 1 + the limb that goes on from here
	facts
	label byte
	depth uint8
	tells uint8 // how many characters at its end are as good as a pattern; 0: none are
	keeps bool  // it is unlikely to be anything but the beginning of a pattern that goes on
}

// limb is what patterns have in common behind the trunk, or behind another limb.
type limb struct {
	text     string // from the beginning of the pattern on
	from, to int
	next     []uint32 // limbs that go on from its end
	facts
}

// facts are of the patterns that begin alike.
type facts struct {
	enough  uint16 // the least number of characters that is as good as all of one
	sure    uint16 // the least that is unlikely to be anything else
	longest uint16
}

// reach bounds the bytes that what is matched may stand on.
func (f *facts) reach() int { return maxSlack + maxWritten*int(f.longest) }

// newAutomaton compiles patterns of the same alphabet.
func newAutomaton(all []pattern) *automaton {
	a := &automaton{alphabet: all[0].alphabet, nodes: make([]node, 1)}
	for c := range 256 {
		a.class[c] = a.canonical(byte(c))
	}
	sorted := slices.Clone(all)
	for i := range sorted {
		text := []byte(sorted[i].text)
		for k, c := range text {
			text[k] = a.class[c]
		}
		sorted[i].text = string(text)
	}
	slices.SortFunc(sorted, func(x, y pattern) int { return cmp.Compare(x.text, y.text) })
	b := builder{automaton: a}
	b.grow(0, sorted)
	b.link()
	return a
}

// canonical returns the one character that stands for all that are the same as c.
func (a alphabet) canonical(c byte) byte {
	switch {
	case a.url && c == '-':
		return '+'
	case a.url && c == '_':
		return '/'
	case a.marks && (c == ' ' || c == ';' || c == '\n'):
		return ','
	case a.fold:
		return lower(c)
	}
	return c
}

// builder holds what only the building of an automaton needs.
type builder struct {
	*automaton
	levels [maxTrunk + 1][]uint32 // states by depth
	kids   [][]uint32             // of each state, in the order of their characters
	by     []byte                 // the character that leads to each state
}

func factsOf(all []pattern) (f facts) {
	f.enough, f.sure = 1<<16-1, 1<<16-1
	for i := range all {
		f.enough = min(f.enough, uint16(all[i].enough()))
		f.sure = min(f.sure, uint16(all[i].sure))
		f.longest = max(f.longest, uint16(len(all[i].text)))
	}
	return f
}

// branches calls yield for each run of sorted patterns with the same character at depth.
func branches(sorted []pattern, depth int, yield func(c byte, run []pattern)) {
	for len(sorted) > 0 && len(sorted[0].text) <= depth {
		sorted = sorted[1:]
	}
	for len(sorted) > 0 {
		c, n := sorted[0].text[depth], 1
		for n < len(sorted) && sorted[n].text[depth] == c {
			n++
		}
		yield(c, sorted[:n])
		sorted = sorted[n:]
	}
}

// grow adds the states that follow s, for the sorted patterns that begin as it does.
func (b *builder) grow(s uint32, sorted []pattern) {
	depth := int(b.nodes[s].depth)
	if len(b.kids) <= int(s) {
		b.kids, b.by = append(b.kids, nil), append(b.by, 0)
	}
	if depth == maxTrunk {
		if len(sorted[len(sorted)-1].text) > depth {
			b.nodes[s].limb = b.limb(sorted, depth) + 1
		}
		return
	}
	branches(sorted, depth, func(c byte, run []pattern) {
		next := uint32(len(b.nodes))
		f := factsOf(run)
		t := node{facts: f, depth: uint8(depth + 1)}
		if int(t.depth) >= int(f.enough) {
			t.tells = t.depth
		}
		t.keeps = t.depth >= uint8(min(f.sure, 255)) && int(f.longest) > int(t.depth)
		b.nodes = append(b.nodes, t)
		b.levels[depth+1] = append(b.levels[depth+1], next)
		b.kids[s] = append(b.kids[s], next)
		b.grow(next, run)
		b.by[next] = c
	})
	if s != 0 && len(b.kids[s]) == 1 {
		b.nodes[s].label = b.by[b.kids[s][0]]
	}
}

// limb adds the limbs for sorted patterns that have the first depth characters in common.
func (b *builder) limb(sorted []pattern, depth int) uint32 {
	for len(sorted[0].text) == depth {
		sorted = sorted[1:] // it ends here
	}
	text, last := sorted[0].text, sorted[len(sorted)-1].text
	to := depth
	for to < len(text) && text[to] == last[to] {
		to++
	}
	at := len(b.limbs)
	b.limbs = append(b.limbs, limb{text: text, from: depth, to: to, facts: factsOf(sorted)})
	branches(sorted, to, func(_ byte, run []pattern) {
		next := b.limb(run, to)
		b.limbs[at].next = append(b.limbs[at].next, next)
	})
	return uint32(at)
}

// link enters where states lead to on characters that none of their patterns has.
func (b *builder) link() {
	for _, s := range b.kids[0] {
		b.roots[b.by[s]] = s
	}
	for _, level := range b.levels[1:] {
		for _, s := range level {
			t := &b.nodes[s]
			f := &b.nodes[t.fail]
			if t.tells == 0 {
				t.tells = f.tells
			}
			t.keeps = t.keeps || f.keeps
			t.back = t.fail
			for t.back != 0 {
				f := &b.nodes[t.back]
				if f.table != 0 || f.label != t.label && f.label != 0 {
					break
				}
				t.back = f.back
			}
			for _, next := range b.kids[s] {
				b.nodes[next].fail = b.step(t.fail, b.by[next])
			}
			if len(b.kids[s]) < 2 {
				continue
			}
			var row [256]uint32
			for c := range 256 {
				row[c] = b.step(t.fail, byte(c))
			}
			for _, next := range b.kids[s] {
				row[b.by[next]] = next
			}
			b.tables = append(b.tables, row)
			t.table = uint32(len(b.tables))
		}
	}
}

// step returns the state that a canonical character leads to.
func (a *automaton) step(s uint32, c byte) uint32 {
	for s != 0 {
		t := &a.nodes[s]
		if t.table != 0 {
			return a.tables[t.table-1][c]
		}
		if t.label == c && c != 0 {
			return s + 1
		}
		s = t.back
	}
	return a.roots[c]
}

// leaf reports whether nothing follows a state but what follows one of a shorter beginning.
func (t *node) leaf() bool { return t.label == 0 && t.table == 0 && t.limb == 0 }

// follow returns the limb and depth that a character leads to, behind the first depth characters of a
// limb. Where it leads on from there, ok is true.
func (a *automaton) follow(l uint32, depth int, c byte) (next uint32, ok bool) {
	at := &a.limbs[l]
	if depth < at.to {
		return l, at.text[depth] == c
	}
	for _, next := range at.next {
		if a.limbs[next].text[depth] == c {
			return next, true
		}
	}
	return 0, false
}

// ends reports whether nothing follows the first depth characters of a limb.
func (l *limb) ends(depth int) bool { return depth == l.to && len(l.next) == 0 }
