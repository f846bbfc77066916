// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"time"

	"sandpit.dev/fault"
)

// maxLine bounds a line of an export: a body whose characters are all escaped, and what is around it.
const maxLine = 2*MaxBody + 1024

// Report is what is true of an export.
type Report struct {
	Key      PublicKey // that signed it
	At       time.Time
	Complete bool
	Filter   map[string]string
	Rows     int64
	Chains   []Chain   // of a complete one
	Altered  []int64   // rows that say that the log was found changed, the first few
	From, To time.Time // when the oldest row and the newest are of
}

// Add counts a record.
func (p *Report) Add(r *Record) {
	if r.Type == Altered && len(p.Altered) < 10 {
		p.Altered = append(p.Altered, r.Seq)
	}
	if p.Rows++; p.From.IsZero() || r.At.Before(p.From) {
		p.From = r.At
	}
	if r.At.After(p.To) {
		p.To = r.At
	}
}

// VerifyExport reads an export and returns what is in it, or the first thing that is wrong: any byte that is not as
// it was written. If key is not nil, it must be the one that signed. Without it an export that somebody else made and signed
// verifies, with another Key in its report.
func VerifyExport(r io.Reader, key *PublicKey, expect []Expect) (*Report, error) {
	f := &reader{in: bufio.NewReaderSize(r, maxLine), sum: sha256.New()}
	line, err := f.next()
	if err != nil {
		return nil, err
	}
	var h Header
	if err := json.Unmarshal(line, &h); err != nil || h.Version == 0 {
		return nil, broken("line 1 is not the head of an export of an audit log")
	}
	if h.Version != 1 {
		return nil, fault.New(fault.Unsupported, "the export has the version %d; this program reads 1", h.Version)
	}
	report := &Report{At: h.At, Complete: h.Complete, Filter: h.Filter}
	if report.Key, err = ParsePublicKey(h.Key); err != nil {
		return nil, err
	}
	if key != nil && !key.Equal(report.Key) {
		return nil, broken("the export is signed by %s, and not by %s", report.Key, key)
	}
	f.report, f.check = report, NewVerifier(report.Key, expect)
	for {
		f.add(line)
		if line, err = f.next(); err != nil {
			return nil, err
		}
		if bytes.HasPrefix(line, []byte(`{"end":`)) {
			break
		}
		if bytes.HasPrefix(line, []byte(`{"checkpoint":`)) {
			err = f.checkpoint(line)
		} else {
			err = f.row(line)
		}
		if err != nil {
			return nil, fault.Wrap(fault.Of(err), err, "line %d: %s", f.line, fault.As(err).Message)
		}
	}
	if err := f.end(line); err != nil {
		return nil, err
	}
	if h.Complete || len(expect) > 0 {
		if report.Chains, err = f.check.Finish(); err != nil {
			return nil, err
		}
	}
	return report, nil
}

// reader reads an export.
type reader struct {
	in     *bufio.Reader
	line   int
	sum    hash.Hash
	check  *Verifier
	report *Report
}

// next returns the next line, without its end, until the call after it.
func (f *reader) next() ([]byte, error) {
	line, err := f.in.ReadSlice('\n')
	f.line++
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, broken("line %d has more than %d bytes", f.line, maxLine)
	case errors.Is(err, io.EOF):
		return nil, broken("the export breaks off in line %d: its signed end is missing", f.line)
	case err != nil:
		return nil, err
	}
	return line[:len(line)-1], nil
}

// add adds a line to what the end signs.
func (f *reader) add(line []byte) {
	f.sum.Write(line)
	f.sum.Write([]byte{'\n'})
}

func (f *reader) checkpoint(line []byte) error {
	var l checkpointLine
	if err := json.Unmarshal(line, &l); err != nil {
		return broken("it is not a checkpoint")
	}
	hash, err := ParseHash(l.Hash)
	if err != nil {
		return err
	}
	return f.check.Checkpoint(Checkpoint{l.Kind, l.Writer, l.Seq, hash, l.At, l.Signature})
}

func (f *reader) row(line []byte) error {
	var l rowLine
	if err := json.Unmarshal(line, &l); err != nil || !bytes.Equal(l.encode(), line) {
		return broken("it is not a row as exports have it")
	}
	hash, err := ParseHash(l.Hash)
	if err != nil {
		return err
	}
	var r *Record
	if f.report.Complete {
		r, err = f.check.Row(l.Row, hash)
	} else {
		r, err = lone(&l, hash)
	}
	if err != nil {
		return err
	}
	f.report.Add(r)
	return nil
}

// lone checks a row without those around it.
func lone(l *rowLine, hash Hash) (*Record, error) {
	after, err := ParseHash(l.After)
	if err != nil {
		return nil, err
	}
	if after.Next(l.Row) != hash {
		return nil, broken("it was changed: its hash is %s, and not %s", after.Next(l.Row), hash)
	}
	return Decode(l.Row)
}

// end checks the last line, which must be as it was written to the byte, and that nothing comes after it.
func (f *reader) end(line []byte) error {
	var l endLine
	err := json.Unmarshal(line, &l)
	again, _ := json.Marshal(l)
	if err != nil || !bytes.Equal(again, line) {
		return broken("line %d is not the end of an export", f.line)
	}
	switch sum := hexOf(f.sum.Sum(nil)); {
	case l.End.SHA256 != sum:
		return broken("the bytes before line %d have the hash %s, and its end says %s: some were changed, removed, added or moved", f.line, sum, l.End.SHA256)
	case l.End.Rows != f.report.Rows:
		return broken("the export has %d rows, and its end says %d", f.report.Rows, l.End.Rows)
	case !f.report.Key.Verify(l.End.message(), l.End.Signature):
		return broken("line %d: the signature is not of %s", f.line, f.report.Key)
	}
	if _, err := f.in.ReadByte(); !errors.Is(err, io.EOF) {
		return broken("something comes after the end of the export, line %d", f.line)
	}
	return nil
}
