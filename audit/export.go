// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto/sha256"
	"encoding/json"
	"hash"
	"io"
	"strconv"
	"time"
)

// Header is the first line of an export.
type Header struct {
	Version  int               `json:"sandpit_audit"` // 1
	At       time.Time         `json:"at"`
	Key      string            `json:"key"`      // that it is signed by
	Complete bool              `json:"complete"` // false: some rows were left out by Filter
	Filter   map[string]string `json:"filter,omitempty"`
}

// rowLine is a row in an export.
type rowLine struct {
	After string          `json:"after,omitempty"` // the hash of the row before it, in an export that is not complete
	Hash  string          `json:"hash"`
	Row   json.RawMessage `json:"row"`
}

// endLine is the last line of an export.
type endLine struct {
	End end `json:"end"`
}

type end struct {
	Rows      int64  `json:"rows"`
	SHA256    string `json:"sha256"` // of all bytes before this line
	Signature []byte `json:"signature"`
}

const exportPrefix = "sandpit audit export 1\n"

func (e *end) message() []byte {
	return []byte(exportPrefix + e.SHA256 + "\n" + strconv.FormatInt(e.Rows, 10) + "\n")
}

// Export writes an export as lines of JSON: a [Header], checkpoints and rows, and an end that signs all that is
// before it. It is not safe for concurrent use; after an error all calls return it.
type Export struct {
	w    io.Writer
	sum  hash.Hash
	key  Key
	part bool
	rows int64
	err  error
}

// NewExport writes the header. Its Version and Key are set.
func NewExport(w io.Writer, key Key, h Header) *Export {
	h.Version, h.Key, h.At = 1, key.Public().String(), h.At.UTC()
	e := &Export{w: w, sum: sha256.New(), key: key, part: !h.Complete}
	b, err := json.Marshal(h)
	if e.err = err; err == nil {
		e.line(b)
	}
	return e
}

func (e *Export) line(b []byte) {
	if e.err != nil {
		return
	}
	b = append(b, '\n')
	e.sum.Write(b)
	_, e.err = e.w.Write(b)
}

// Checkpoint writes a checkpoint; those of a writer come before its rows.
func (e *Export) Checkpoint(c Checkpoint) error {
	e.line(c.line())
	return e.err
}

// Row writes a row, which comes after the row of a hash.
func (e *Export) Row(after Hash, body []byte, hash Hash) error {
	l := rowLine{Hash: hash.String(), Row: body}
	if e.part {
		l.After = after.String()
	}
	e.line(l.encode())
	e.rows++
	return e.err
}

// encode writes a line without looking at the body: it is JSON, and stays as it was hashed.
func (l *rowLine) encode() []byte {
	b := make([]byte, 0, len(l.Row)+200)
	b = append(b, '{')
	if l.After != "" {
		b = append(append(append(b, `"after":"`...), l.After...), `",`...)
	}
	b = append(append(append(b, `"hash":"`...), l.Hash...), `","row":`...)
	return append(append(b, l.Row...), '}')
}

// Close writes the end. It does not close the writer.
func (e *Export) Close() error {
	if e.err != nil {
		return e.err
	}
	last := end{Rows: e.rows, SHA256: hexOf(e.sum.Sum(nil))}
	last.Signature = e.key.Sign(last.message())
	b, err := json.Marshal(endLine{last})
	if err == nil {
		_, err = e.w.Write(append(b, '\n'))
	}
	e.err = err
	return err
}
