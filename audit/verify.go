// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"strconv"
	"strings"

	"sandpit.dev/fault"
)

// Verifier checks the rows of a log, as they come. It is not safe for concurrent use.
type Verifier struct {
	key    PublicKey
	expect []Expect
	chains map[string]*chain
	rows   int64
}

// Expect is the hash that a row is known to have, from somewhere that a forger cannot write to.
type Expect struct {
	Writer string
	Seq    int64
	Hash   Hash
}

// Chain is what was found of the rows of a writer.
type Chain struct {
	Writer string
	From   int64 // the first row that is there; 0: none is
	To     int64 // the last
	Hash   Hash  // of the last; without rows that of the start
	Head   int64 // up to where a signed head vouches that no row is missing at the end
}

// chain is a writer's rows as they come.
type chain struct {
	Chain
	last int64 // the row before the next
	head *Checkpoint
	seen map[int64]Hash // of rows that are expected, or a head's
}

// NewVerifier returns a verifier of what a key signed.
func NewVerifier(key PublicKey, expect []Expect) *Verifier {
	return &Verifier{key: key, expect: expect, chains: make(map[string]*chain)}
}

func broken(format string, args ...any) error {
	return fault.New(fault.Invalid, format, args...).WithRemedy("this is not what the server wrote: keep it as it is, and compare it with another copy")
}

func (v *Verifier) chain(writer string) *chain {
	c := v.chains[writer]
	if c == nil {
		c = &chain{Chain: Chain{Writer: writer}, seen: make(map[int64]Hash)}
		v.chains[writer] = c
	}
	return c
}

// Checkpoint takes a checkpoint, before the rows of its writer.
func (v *Verifier) Checkpoint(c Checkpoint) error {
	if !c.Signed(v.key) {
		return broken("the checkpoint of row %d of %.40q is not signed by %s", c.Seq, c.Writer, v.key)
	}
	of := v.chain(c.Writer)
	if of.From != 0 {
		return broken("a checkpoint of %.40q comes after rows of it", c.Writer)
	}
	switch c.Kind {
	case Start:
		if of.last != 0 {
			return broken("%.40q has two starts", c.Writer)
		}
		of.last, of.Hash = c.Seq, c.Hash
	case Head:
		if of.head != nil {
			return broken("%.40q has two heads", c.Writer)
		}
		of.head = &c
	default:
		return broken("%.40q is no kind of a checkpoint", c.Kind)
	}
	return nil
}

// Row takes the next row of a chain, and returns its record.
func (v *Verifier) Row(body []byte, hash Hash) (*Record, error) {
	r, err := Decode(body)
	if err != nil {
		return nil, err
	}
	c := v.chain(r.Writer)
	switch {
	case r.Seq != c.last+1 && c.last == 0:
		return r, broken("the rows of %.40q begin with %d, and no signed checkpoint says that older ones were deleted", r.Writer, r.Seq)
	case r.Seq != c.last+1:
		return r, broken("row %d of %.40q comes after row %d: rows are missing, added or moved", r.Seq, r.Writer, c.last)
	}
	if want := c.Hash.Next(body); want != hash {
		return r, broken("row %d of %.40q was changed, or the one before it: its hash is %s, and not %s", r.Seq, r.Writer, want, hash)
	}
	if c.From == 0 {
		c.From = r.Seq
		v.note(c, c.last)
	}
	c.last, c.To, c.Hash = r.Seq, r.Seq, hash
	v.note(c, r.Seq)
	v.rows++
	return r, nil
}

// note keeps the hash of a row that a head or an expectation is about.
func (v *Verifier) note(c *chain, seq int64) {
	if c.head != nil && c.head.Seq == seq || slices.ContainsFunc(v.expect, func(e Expect) bool { return e.Writer == c.Writer && e.Seq == seq }) {
		c.seen[seq] = c.Hash
	}
}

// Finish ends it, and returns the chains by the names of their writers.
func (v *Verifier) Finish() ([]Chain, error) {
	var out []Chain
	for _, c := range v.chains {
		if c.From == 0 {
			v.note(c, c.last)
		}
		if c.head == nil && c.From != 0 {
			return nil, broken("the rows of %.40q have no signed head, which says that none is missing at the end", c.Writer)
		}
		if h := c.head; h != nil {
			switch hash, ok := c.seen[h.Seq]; {
			case ok && hash != h.Hash:
				return nil, broken("row %d of %.40q has the hash %s, and its signed head says %s", h.Seq, c.Writer, hash, h.Hash)
			case h.Seq > c.last:
				return nil, broken("the rows of %.40q end with %d, and a signed head says that there was row %d", c.Writer, c.last, h.Seq)
			}
			c.Head = h.Seq
		}
		out = append(out, c.Chain)
	}
	for _, e := range v.expect {
		c := v.chains[e.Writer]
		if c == nil {
			return nil, broken("there is no row of %.40q, of which row %d is expected", e.Writer, e.Seq)
		}
		switch hash, ok := c.seen[e.Seq]; {
		case !ok && e.Seq > c.last:
			return nil, broken("the rows of %.40q end with %d; row %d is expected", c.Writer, c.last, e.Seq)
		case !ok:
			return nil, broken("row %d of %.40q is expected, and the oldest that is there is %d", e.Seq, c.Writer, c.From)
		case hash != e.Hash:
			return nil, broken("row %d of %.40q has the hash %s; %s is expected", e.Seq, c.Writer, hash, e.Hash)
		}
	}
	slices.SortFunc(out, func(a, b Chain) int { return strings.Compare(a.Writer, b.Writer) })
	return out, nil
}

// ParseExpect reads an expectation as WRITER:NUMBER:HASH.
func ParseExpect(s string) (e Expect, err error) {
	parts := strings.Split(s, ":")
	if len(parts) == 3 && parts[0] != "" {
		var hash Hash
		seq, wrong := strconv.ParseInt(parts[1], 10, 64)
		if hash, err = ParseHash(parts[2]); err == nil && wrong == nil && seq > 0 {
			return Expect{parts[0], seq, hash}, nil
		}
	}
	return e, fault.New(fault.Invalid, "%.120q is not a row of an audit log: WRITER:NUMBER:HASH", s)
}
