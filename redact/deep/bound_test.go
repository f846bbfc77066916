// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"strings"
	"testing"
	"time"
	"unsafe"

	"sandpit.dev/internal/skiptest"
)

// passing returns what a body of size bytes, in which text is repeated, takes of the processor's time.
func passing(t *testing.T, v *Set, text string, size, step int) time.Duration {
	body := []byte(strings.Repeat(text, size/len(text)+1)[:size])
	m := v.Stream()
	n := 0
	began := cpu(t)
	for ; len(body) > 0; body = body[min(step, len(body)):] {
		n += len(m.Push(body[:min(step, len(body))]))
	}
	n += len(m.End())
	took := cpu(t) - began
	if n != size {
		t.Errorf("%d bytes of %d came out", n, size)
	}
	return took
}

// few are those of the hostile bodies that are most work.
func few(value string) map[string]string {
	all := hostile(value)
	for how := range chosen(value) {
		delete(all, how)
		if strings.Contains(how, " in ") || strings.Contains(how, " of ") || strings.Contains(how, "upper") {
			delete(all, "most of half of "+how)
		}
	}
	return all
}

func TestNoBodyTakesMuchLongerThanOthers(t *testing.T) {
	const size, most = 8 << 10, 2000 // times as long as text does
	for which, value := range hostileValues() {
		v := New([]string{value})
		passing(t, v, ordinary()["text"], 1000, 1000) // it is compiled
		usual := passing(t, v, ordinary()["text"], 256*size, readSize) / 256
		for how, text := range few(value) {
			if took := passing(t, v, text, size, 700); took > most*usual {
				t.Errorf("%s, %s: %v, and text takes %v", which, how, took, usual)
			}
		}
	}
}

func TestOneByteAtATimeIsNoMoreWorkForWhatIsKeptBack(t *testing.T) {
	const size = 64 << 10
	value := strings.Repeat("a", 8<<10)
	v := New([]string{value})
	// Of the one body a long beginning is kept back, of the other a short one.
	long, short := value[:len(value)/2-1]+"\n", "aaa~"
	passing(t, v, short, size, 1)
	if l, s := passing(t, v, long, size, 1), passing(t, v, short, size, 1); l > 20*s {
		t.Errorf("%v with much that is kept back, %v with little", l, s)
	}
}

func TestWhatAStreamHoldsIsBounded(t *testing.T) {
	skiptest.WithShort(t, "large bodies go through")
	for which, value := range hostileValues() {
		v := New([]string{value})
		longest := 0
		for _, s := range patterns(value) {
			longest = max(longest, len(s.text))
		}
		kept := maxSlack + maxWritten*longest
		for how, text := range few(value) {
			m := v.Stream()
			body := []byte(strings.Repeat(text, 12<<10/len(text)+1))
			for len(body) > 0 {
				n := min(1000, len(body))
				m.Push(body[:n])
				body = body[n:]
				if len(m.held) > kept+1000+window {
					t.Fatalf("%s, %s: %d bytes are kept back", which, how, len(m.held))
				}
			}
			held := max(cap(m.buf), cap(m.held)) + len(m.tokens.ring)*int(unsafe.Sizeof(token{})) + cap(m.all)*int(unsafe.Sizeof(match{})) + cap(m.spans)*int(unsafe.Sizeof(span{}))
			if held > 512<<10 {
				t.Errorf("%s, %s: %d bytes are held: %d kept back of at most %d, %d tokens, %d matches, %d spans", which, how, held, len(m.held), kept, len(m.tokens.ring), cap(m.all), cap(m.spans))
			}
		}
	}
}
