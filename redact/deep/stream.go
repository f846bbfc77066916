// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package deep

// Stream masks values in what is pushed through it, wherever that is divided. What its
// methods return is valid until the next call. It reads each byte once: a text may be read in more than
// one way, so at each place there are some matches under way, but never many.
type Stream struct {
	set  *Set
	held []byte // that may be the beginning of a value
	out  []byte

	base int // how many bytes were before held
	at   int // how many bytes were read
	gone int // how many bytes were let go

	buf    []byte         // what held is a part of
	heads  [window]uint16 // the matches that go on at a place: 1 + the first of a list in all
	all    []match
	free   uint16 // the list of those that are not in use
	live   int
	far    int // no match goes on behind it
	tokens tokens
	spans  []span // what is to be masked, in order and apart
}

// match is the beginning of a pattern that was read, in one of the ways to read it.
type match struct {
	start, end int    // where it stands
	state      uint32 // or limb
	token      uint32 // where its last character was read, unless it is on a limb
	mine       uint32 // the token of one that comes after that; 0: none is yet
	depth      uint16 // how many characters
	next       uint16 // 1 + the next in the list
	group      uint8
	limb       bool
	gap        uint8 // how much was read over since end
}

type span struct{ from, to int }

const (
	window     = 256 // more than a character or a gap may take
	maxMatches = 6   // that go on at one place in one alphabet: of more, those that are longest
	maxLimbs   = 2   // and so many limbs
)

// Push takes more of the text, and returns what is clear.
func (m *Stream) Push(b []byte) []byte {
	if len(m.held) == 0 {
		m.held = m.buf[:0]
	}
	m.held = append(m.held, b...)
	if len(m.held) == len(b) {
		m.buf = m.held
	}
	m.scan(false)
	return m.out
}

// End ends the text, and returns what is left.
func (m *Stream) End() []byte {
	m.scan(true)
	return m.out
}

// Pending reports whether anything is kept back.
func (m *Stream) Pending() bool { return m.gone < m.base+len(m.held) }

// scan moves from held to out what is clear; at the end all of it.
func (m *Stream) scan(end bool) {
	x := m.set.index()
	m.out = m.out[:0]
	for {
		i := m.at - m.base
		if m.live == 0 {
			i = x.next(m.held, i)
			m.at = m.base + i
			if i == len(m.held) {
				break
			}
		} else if m.heads[m.at%window] == 0 && i < len(m.held) && !(x.begin[m.held[i]] && x.may(m.held[i:])) {
			m.at++
			continue
		}
		if !m.read(x, end) {
			break
		}
	}
	clear := m.at
	for at := m.at; m.live > 0 && at <= m.far && !end; at++ {
		for k := m.heads[at%window]; k != 0; k = m.all[k-1].next {
			c := &m.all[k-1]
			if at == m.at && x.whole(c) { // all of it is masked already
				clear = min(clear, c.end)
			} else {
				clear = min(clear, c.start)
			}
		}
	}
	clear = max(clear, m.base) // what is before it is masked
	m.flush(clear)
	n := clear - m.base
	if len(m.held)-n <= n {
		if m.buf == nil {
			m.buf = m.held
		}
		m.held = append(m.buf[:0], m.held[n:]...)
		m.buf = m.held
	} else {
		m.held = m.held[n:]
	}
	m.base = clear
}

// flush puts out what is held before a place.
func (m *Stream) flush(to int) {
	done := 0
	for _, s := range m.spans {
		if s.from >= to {
			break
		}
		m.put(min(s.from, to))
		for m.gone = max(m.gone, s.from); m.gone < min(s.to, to); m.gone++ {
			m.out = append(m.out, star)
		}
		if s.to <= to {
			done++
		}
	}
	m.spans = append(m.spans[:0], m.spans[done:]...)
	m.put(to)
}

// put puts out bytes as they are.
func (m *Stream) put(to int) {
	if m.gone < to {
		m.out = append(m.out, m.held[m.gone-m.base:to-m.base]...)
		m.gone = to
	}
}

// Release returns what is kept back, unless it is surely the beginning of a value. Should it be one
// nonetheless, what comes later of it is masked.
func (m *Stream) Release() []byte {
	x := m.set.index()
	m.out = m.out[:0]
	for at := m.at; m.live > 0 && at <= m.far; at++ {
		for k := m.heads[at%window]; k != 0; k = m.all[k-1].next {
			if x.likely(&m.all[k-1]) {
				return nil
			}
		}
	}
	m.flush(m.base + len(m.held))
	return m.out
}

// whole reports whether a match is as good as a pattern.
func (x *index) whole(c *match) bool {
	a := x.groups[c.group]
	if c.limb {
		return c.depth >= a.limbs[c.state].enough
	}
	return uint16(a.nodes[c.state].tells) == c.depth
}

// likely reports whether a match is unlikely to be anything but the beginning of a pattern.
func (x *index) likely(c *match) bool {
	a := x.groups[c.group]
	if c.limb {
		return c.depth >= a.limbs[c.state].sure
	}
	return a.nodes[c.state].keeps
}

// read reads what begins at the next place. It returns false where the text ends before
// that is clear.
func (m *Stream) read(x *index, end bool) bool {
	present, covered := m.land(x)
	b := m.held[m.at-m.base:]
	if len(b) == 0 {
		return false
	}
	var e escaped
	if beginsEscape(b[0]) {
		e = unescape(b)
	}
	more := e.more
	var gaps [maxGroups]int
	for g, a := range x.groups {
		if present&(1<<g) != 0 {
			n, open := a.gap(b, &e)
			gaps[g] = n
			more = more || open
		}
	}
	if more && !end {
		return false
	}
	m.take(x, b[0], m.at+1, covered)
	for i := range e.n {
		m.take(x, e.chars[i], m.at+int(e.ends[i]), covered)
	}
	head := &m.heads[m.at%window]
	for k := *head; k != 0; {
		c := m.all[k-1]
		m.release(k)
		if n := gaps[c.group]; n > 0 && c.gap < maxGap {
			c.gap++
			c.mine = 0
			m.enter(m.at+n, c)
		}
		k = c.next
	}
	*head = 0
	m.at++
	return true
}

// land masks what was found to end at the next place, and returns the groups of the matches
// that go on there, and those where one may fall back to a match that begins there.
func (m *Stream) land(x *index) (present, covered uint8) {
	last := &m.heads[m.at%window]
	for *last != 0 {
		k := *last
		c := &m.all[k-1]
		a := x.groups[c.group]
		on := true
		if c.limb {
			l := &a.limbs[c.state]
			if c.gap == 0 && c.depth >= l.enough {
				m.mask(c.start, c.end)
			}
			on = !l.ends(int(c.depth))
		} else {
			s := &a.nodes[c.state]
			if c.gap == 0 && s.tells > 0 {
				m.mask(m.begins(c, int(s.tells)), c.end)
			}
			for on && s.leaf() {
				c.state = s.fail
				if on = c.state != 0; on {
					s = &a.nodes[c.state]
					c.start = m.begins(c, int(s.depth))
					c.depth = uint16(s.depth)
				}
			}
		}
		if !on {
			*last = c.next
			m.release(k)
			continue
		}
		present |= 1 << c.group
		if !c.limb {
			covered |= 1 << c.group
		}
		last = &c.next
	}
	return present, covered
}

// begins returns where the last depth characters of a match begin.
func (m *Stream) begins(c *match, depth int) int {
	if depth == int(c.depth) {
		return c.start
	}
	return m.tokens.before(c.token, depth-1, m.at)
}

// mask enters what is to be masked. Ends never go back.
func (m *Stream) mask(from, to int) {
	for n := len(m.spans); n > 0 && m.spans[n-1].to >= from; n-- {
		from = min(from, m.spans[n-1].from)
		m.spans = m.spans[:n-1]
	}
	m.spans = append(m.spans, span{from, to})
}

// take reads a character that ends at a place.
func (m *Stream) take(x *index, c byte, end int, covered uint8) {
	for k := m.heads[m.at%window]; k != 0; k = m.all[k-1].next {
		from := &m.all[k-1]
		a := x.groups[from.group]
		switch c := a.class[c]; {
		case from.limb:
			m.follow(a, k-1, from.state, c, end)
		case a.nodes[from.state].limb != 0:
			m.follow(a, k-1, a.nodes[from.state].limb-1, c, end)
			m.advance(a, k-1, c, end)
		default:
			m.advance(a, k-1, c, end)
		}
	}
	for groups, g := x.firsts[c]&^covered, 0; groups != 0; groups, g = groups>>1, g+1 {
		if groups&1 != 0 {
			m.begin(x.groups[g], uint8(g), c, end)
		}
	}
}

// begin reads the first character of a match.
func (m *Stream) begin(a *automaton, group uint8, c byte, end int) {
	m.room()
	m.enter(end, match{start: m.at, end: end, state: a.roots[a.class[c]], token: m.tokens.add(m.tokens.next, m.at), depth: 1, group: group})
}

// follow reads a character on a limb after a match.
func (m *Stream) follow(a *automaton, k uint16, l uint32, c byte, end int) {
	from := &m.all[k]
	next, ok := a.follow(l, int(from.depth), c)
	if !ok || end-from.start > a.limbs[next].reach() {
		return
	}
	m.enter(end, match{start: from.start, end: end, state: next, depth: from.depth + 1, group: from.group, limb: true})
}

// advance reads a character after a match that is not on a limb, and enters what it has become, or of
// it as much as is not too long.
func (m *Stream) advance(a *automaton, k uint16, c byte, end int) {
	from := &m.all[k]
	for s := a.step(from.state, c); s != 0; {
		n := &a.nodes[s]
		if n.depth == 1 {
			m.begin(a, from.group, c, end)
			return
		}
		start := from.start
		if int(n.depth) <= int(from.depth) {
			start = m.begins(from, int(n.depth)-1)
		}
		if end-start <= n.reach() {
			token := m.after(k)
			m.enter(end, match{start: start, end: end, state: s, token: token, depth: uint16(n.depth), group: from.group})
			return
		}
		s = n.fail
	}
}

// after returns the token of what is read at the next place after a match.
func (m *Stream) after(k uint16) uint32 {
	c := &m.all[k]
	if c.mine == 0 {
		m.room()
		c.mine = m.tokens.add(c.token, m.at) + 1
	}
	return c.mine - 1
}

// room makes room for a token.
func (m *Stream) room() {
	if !m.tokens.full() {
		return
	}
	oldest := m.at
	for at := m.at; m.live > 0 && at <= m.far; at++ {
		for k := m.heads[at%window]; k != 0; k = m.all[k-1].next {
			if c := &m.all[k-1]; !c.limb {
				oldest = min(oldest, c.start)
			}
		}
	}
	m.tokens.drop(oldest)
}

// enter adds a match to those that go on at a place.
func (m *Stream) enter(at int, c match) {
	head := &m.heads[at%window]
	many, least := 0, uint16(0)
	for k := *head; k != 0; k = m.all[k-1].next {
		o := &m.all[k-1]
		if o.group != c.group || o.limb != c.limb {
			continue
		}
		if o.state == c.state && o.depth == c.depth {
			if c.start < o.start || c.start == o.start && c.gap < o.gap {
				c.next = o.next
				*o = c
			}
			return
		}
		if many++; least == 0 || o.depth < m.all[least-1].depth {
			least = k
		}
	}
	if c.limb && many == maxLimbs || many == maxMatches {
		if o := &m.all[least-1]; o.depth < c.depth {
			c.next = o.next
			*o = c
		}
		return
	}
	k := m.free
	if k == 0 {
		m.all = append(m.all, match{})
		k = uint16(len(m.all))
	} else {
		m.free = m.all[k-1].next
	}
	c.next = *head
	m.all[k-1] = c
	*head = k
	m.live++
	m.far = max(m.far, at)
}

// release takes a match out of use.
func (m *Stream) release(k uint16) {
	m.all[k-1].next = m.free
	m.free = k
	m.live--
}
