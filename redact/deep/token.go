// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package deep

// token is where a character of a match was read, and the one before it.
type token struct {
	pos uint32 // of its first byte, the lower bits
	up  uint32 // how many tokens were added since the one before it
}

// tokens are those of matches under way, in a ring. Matches that began alike share them.
type tokens struct {
	ring        []token
	first, next uint32
}

const minTokens = 64

// full reports whether an add needs a drop first.
func (t *tokens) full() bool { return t.next-t.first == uint32(len(t.ring)) }

// drop forgets tokens before a position, and makes room.
func (t *tokens) drop(pos int) {
	mask := uint32(len(t.ring) - 1)
	for t.first != t.next && int32(t.ring[t.first&mask].pos-uint32(pos)) < 0 {
		t.first++
	}
	if len(t.ring) > 0 && int(t.next-t.first) < len(t.ring)/2 {
		return
	}
	ring := make([]token, max(minTokens, 2*len(t.ring)))
	for i := t.first; i != t.next; i++ {
		ring[i&uint32(len(ring)-1)] = t.ring[i&mask]
	}
	t.ring = ring
}

// add enters a token that comes after another; before is t.next where it comes after none.
func (t *tokens) add(before uint32, pos int) uint32 {
	n := t.next
	t.ring[n&uint32(len(t.ring)-1)] = token{uint32(pos), n - before}
	t.next++
	return n
}

// before returns where the token begins that is so many before one, as of a position that is not far
// behind it.
func (t *tokens) before(n uint32, many, now int) int {
	mask := uint32(len(t.ring) - 1)
	for ; many > 0; many-- {
		n -= t.ring[n&mask].up
	}
	return now - int(uint32(now)-t.ring[n&mask].pos)
}
