// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package redact

// Stream masks one text that comes in pieces. It is for one goroutine at a time.
type Stream struct {
	set   *Set
	at    int32 // the state of all that came so far
	found bool
	// What was masked last, counted from the end of what came so far, and not above zero.
	from, to int
}

// Stream returns the mask of one text; that of a nil set masks nothing.
func (s *Set) Stream() *Stream { return &Stream{set: s} }

// Mask masks in place what has come of the text and was not passed on: what was held
// back before, and behind it, from fresh on, what is new. It returns how many bytes are
// ready to be passed on; the others may be the beginning of a value, and are to be held back
// for the next call. A caller that cannot wait passes them on all the same, and leaves them out of the
// next call: of a value that they begin the rest is masked then.
func (s *Stream) Mask(b []byte, fresh int) (ready int) {
	if s.set == nil {
		return len(b)
	}
	set, at := s.set, s.at
	s.from, s.to = s.from+fresh, s.to+fresh
	for i := fresh; i < len(b); i++ {
		if at == 0 {
			i = set.skip(b, i)
		}
		if at = set.step(at, b[i]); at != 0 {
			if n := int(set.states[at].match); n > 0 {
				s.cover(b, max(i+1-n, 0), i+1)
			}
		}
	}
	s.at = at
	ready = max(len(b)-int(set.states[at].depth), 0)
	if s.from <= ready && ready < s.to { // masked already, whatever comes
		ready = s.to
	}
	s.from, s.to = s.from-len(b), s.to-len(b)
	return ready
}

// cover masks b[i:j], without what it knows to be masked.
func (s *Stream) cover(b []byte, i, j int) {
	s.found = true
	if s.from == s.to || i > s.to {
		s.from, s.to = i, i
	}
	stars(b[i:max(i, s.from)])
	stars(b[max(i, s.to):j])
	s.from, s.to = min(s.from, i), j
}

// star stands for each byte of a value.
const star = '*'

func stars(b []byte) {
	for i := range b {
		b[i] = star
	}
}
