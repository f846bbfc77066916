// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"strconv"
	"time"
)

// Kind is what a checkpoint says of its row.
type Kind string

// The kinds.
const (
	Start Kind = "start" // the oldest row that is there comes after it
	Head  Kind = "head"  // it was the newest
)

// Checkpoint is the number and the hash of a row, at a time, signed.
type Checkpoint struct {
	Kind      Kind
	Writer    string
	Seq       int64 // 0, with the zero Hash: before the first row
	Hash      Hash
	At        time.Time // in UTC, to the microsecond
	Signature []byte
}

const checkpointPrefix = "sandpit audit checkpoint 1\n"

// message is what is signed. A writer's name has no line break.
func (c *Checkpoint) message() []byte {
	b := append([]byte(checkpointPrefix), c.Kind...)
	b = append(append(b, '\n'), c.Writer...)
	b = strconv.AppendInt(append(b, '\n'), c.Seq, 10)
	b = append(append(b, '\n'), c.Hash.String()...)
	return c.At.UTC().AppendFormat(append(b, '\n'), time.RFC3339Nano)
}

// Sign signs c.
func (k Key) SignCheckpoint(c *Checkpoint) { c.Signature = k.Sign(c.message()) }

// Signed reports whether c is signed by a key.
func (c *Checkpoint) Signed(by PublicKey) bool { return by.Verify(c.message(), c.Signature) }

// checkpointLine is a checkpoint in an export.
type checkpointLine struct {
	Kind      Kind      `json:"checkpoint"`
	Writer    string    `json:"writer"`
	Seq       int64     `json:"seq"`
	Hash      string    `json:"hash"`
	At        time.Time `json:"at"`
	Signature []byte    `json:"signature"`
}

func (c *Checkpoint) line() []byte {
	b, _ := json.Marshal(checkpointLine{c.Kind, c.Writer, c.Seq, c.Hash.String(), c.At.UTC(), c.Signature})
	return b
}
