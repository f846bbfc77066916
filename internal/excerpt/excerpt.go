// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package excerpt keeps the beginning and the end of a stream, and the hash of all of it.
package excerpt

import (
	"crypto/sha256"
	"hash"
)

// Most is how many bytes of each end of a stream are kept.
const Most = 2 << 10

// Writer takes a stream. The zero Writer has taken none. It is not safe for concurrent use.
type Writer struct {
	hash  hash.Hash
	n     int64
	first []byte
	last  []byte // what came after first, as a ring once it is full
	at    int    // where the oldest byte of a full ring is
}

// Write takes what came next. It keeps nothing of b, and never fails.
func (w *Writer) Write(b []byte) (int, error) {
	if w.hash == nil {
		w.hash = sha256.New()
	}
	w.hash.Write(b)
	n := len(b)
	w.n += int64(n)
	if room := Most - len(w.first); room > 0 {
		took := min(room, len(b))
		w.first, b = append(w.first, b[:took]...), b[took:]
	}
	if len(b) >= Most {
		w.last, w.at = append(w.last[:0], b[len(b)-Most:]...), 0
		return n, nil
	}
	if room := Most - len(w.last); room > 0 {
		took := min(room, len(b))
		w.last, b = append(w.last, b[:took]...), b[took:]
	}
	for len(b) > 0 {
		took := copy(w.last[w.at:], b)
		w.at, b = (w.at+took)%Most, b[took:]
	}
	return n, nil
}

// Excerpt returns what the writer has of the stream so far; nil for an empty one.
func (w *Writer) Excerpt() *Excerpt {
	if w.n == 0 {
		return nil
	}
	e := &Excerpt{Bytes: w.n, SHA256: w.hash.Sum(nil), First: append([]byte(nil), w.first...)}
	if len(w.last) > 0 {
		e.Last = append(append(make([]byte, 0, len(w.last)), w.last[w.at:]...), w.last[:w.at]...)
	}
	return e
}

// Excerpt is the beginning and the end of a stream. The two do not overlap: of a stream of at most twice
// [Most] bytes they are all of it.
type Excerpt struct {
	Bytes  int64  `json:"bytes"`  // that the stream had
	SHA256 []byte `json:"sha256"` // of all of them
	First  []byte `json:"first,omitempty"`
	Last   []byte `json:"last,omitempty"` // of what First leaves out
}

// Valid reports whether an excerpt from somewhere else is one that a [Writer] can have made.
func (e *Excerpt) Valid() bool {
	first := min(e.Bytes, Most)
	return e.Bytes > 0 && len(e.SHA256) == sha256.Size && int64(len(e.First)) == first && int64(len(e.Last)) == min(e.Bytes-first, Most)
}
