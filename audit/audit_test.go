// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/audit"
	"sandpit.dev/internal/excerpt"
	"sandpit.dev/sandbox"
)

var at = time.Date(2026, 11, 28, 10, 0, 0, 123456000, time.UTC)

// chain is a chain of n rows after a start.
type chain struct {
	writer string
	start  audit.Checkpoint
	bodies [][]byte
	hashes []audit.Hash
}

func newChain(t testing.TB, key audit.Key, writer string, start int64, n int) *chain {
	c := &chain{writer: writer, start: audit.Checkpoint{Kind: audit.Start, Writer: writer, Seq: start, At: at}}
	if start > 0 {
		c.start.Hash = audit.Hash{}.Next([]byte("older rows"))
	}
	key.SignCheckpoint(&c.start)
	last := c.start.Hash
	for i := range n {
		exit := i % 3
		r := audit.Record{
			Writer: writer, Seq: start + int64(i) + 1, At: at.Add(time.Duration(i) * time.Second), Type: sandbox.EventExec, Outcome: audit.OK,
			Project: "default", Actor: "alice", Command: fmt.Sprintf("echo \"<%d>\" && printf '\\n\u2028'", i), Exit: &exit,
			Stdout: &audit.Output{Bytes: 3, First: "a\x00\n"},
		}
		body, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		last = last.Next(body)
		c.bodies, c.hashes = append(c.bodies, body), append(c.hashes, last)
	}
	return c
}

func (c *chain) head(key audit.Key, n int) audit.Checkpoint {
	h := audit.Checkpoint{Kind: audit.Head, Writer: c.writer, Seq: c.start.Seq + int64(n), Hash: c.hashes[n-1], At: at}
	key.SignCheckpoint(&h)
	return h
}

func (c *chain) after(i int) audit.Hash {
	if i == 0 {
		return c.start.Hash
	}
	return c.hashes[i-1]
}

// export writes chains, whole or each second row of them.
func export(t testing.TB, key audit.Key, complete bool, chains ...*chain) []byte {
	var b bytes.Buffer
	e := audit.NewExport(&b, key, audit.Header{At: at, Complete: complete})
	for _, c := range chains {
		if complete {
			for _, p := range []audit.Checkpoint{c.start, c.head(key, len(c.bodies))} {
				if err := e.Checkpoint(p); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range c.bodies {
			if !complete && i%2 == 1 {
				continue
			}
			if err := e.Row(c.after(i), c.bodies[i], c.hashes[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAnExportVerifies(t *testing.T) {
	key := audit.NewKey()
	one, two := newChain(t, key, "one", 0, 5), newChain(t, key, "two", 7, 4)
	for _, complete := range []bool{true, false} {
		file := export(t, key, complete, one, two)
		public := key.Public()
		r, err := audit.VerifyExport(bytes.NewReader(file), &public, nil)
		if err != nil {
			t.Fatalf("complete %v: %v\n%s", complete, err, file)
		}
		want := int64(9)
		if !complete {
			want = 5
		}
		if r.Rows != want || r.Complete != complete || !r.Key.Equal(key.Public()) || !r.From.Equal(at) || r.To.Before(at.Add(3*time.Second)) {
			t.Errorf("complete %v: %+v", complete, r)
		}
		if complete && !slices.Equal(r.Chains, []audit.Chain{{Writer: "one", From: 1, To: 5, Hash: one.hashes[4], Head: 5}, {Writer: "two", From: 8, To: 11, Hash: two.hashes[3], Head: 11}}) {
			t.Errorf("chains: %+v", r.Chains)
		}
	}
	empty := export(t, key, true)
	if r, err := audit.VerifyExport(bytes.NewReader(empty), nil, nil); err != nil || r.Rows != 0 {
		t.Errorf("an empty one: %+v, %v", r, err)
	}
}

func TestAByteOfAnExportThatWasChangedRemovedOrAddedIsFound(t *testing.T) {
	key := audit.NewKey()
	for _, complete := range []bool{true, false} {
		file := export(t, key, complete, newChain(t, key, "one", 3, 2))
		found := func(what string, i int, other []byte) {
			t.Helper()
			if bytes.Equal(other, file) {
				return
			}
			if r, err := audit.VerifyExport(bytes.NewReader(other), nil, nil); err == nil {
				t.Fatalf("complete %v: byte %d %s: verified as %+v\n%s", complete, i, what, r, other)
			}
		}
		for i := range file {
			for _, flip := range []byte{0x01, 0x80} {
				other := bytes.Clone(file)
				other[i] ^= flip
				found("changed", i, other)
			}
			found("removed", i, slices.Delete(bytes.Clone(file), i, i+1))
			for _, extra := range []byte{' ', '\n', '"', '0', 'a', 0} {
				found("added", i, slices.Insert(bytes.Clone(file), i, extra))
			}
			found("cut off", i, file[:i])
			if i > 0 {
				other := bytes.Clone(file)
				other[i-1], other[i] = other[i], other[i-1]
				found("exchanged", i, other)
			}
		}
		found("added at the end", len(file), append(bytes.Clone(file), '\n'))
		lines := bytes.SplitAfter(bytes.TrimSuffix(file, []byte("\n")), []byte("\n"))
		for i := range lines {
			found("of a line removed", i, bytes.Join(slices.Delete(slices.Clone(lines), i, i+1), nil))
			found("of a line doubled", i, bytes.Join(slices.Insert(slices.Clone(lines), i, lines[i]), nil))
			for j := range i {
				other := slices.Clone(lines)
				other[i], other[j] = other[j], other[i]
				found("of a line moved", i, bytes.Join(other, nil))
			}
		}
	}
}

// Whoever has no key makes an export anew, and signs it with his own.
func TestAnExportOfAnotherKeyIsFound(t *testing.T) {
	key, forger := audit.NewKey(), audit.NewKey()
	file := export(t, forger, true, newChain(t, forger, "one", 0, 3))
	public := key.Public()
	if _, err := audit.VerifyExport(bytes.NewReader(file), &public, nil); err == nil || !strings.Contains(err.Error(), "signed by") {
		t.Errorf("signed by another key: %v", err)
	}
	// Checkpoints of the real one do not help.
	c := newChain(t, key, "one", 5, 3)
	var b bytes.Buffer
	e := audit.NewExport(&b, forger, audit.Header{At: at, Complete: true})
	_ = e.Checkpoint(c.start)
	_ = e.Close()
	if _, err := audit.VerifyExport(&b, nil, nil); err == nil {
		t.Error("a checkpoint of another key verified")
	}
}

func TestWhatIsKnownFromElsewhereIsHeldAgainstAnExport(t *testing.T) {
	key := audit.NewKey()
	c := newChain(t, key, "one", 2, 4)
	file := export(t, key, true, c)
	verify := func(e audit.Expect) error {
		_, err := audit.VerifyExport(bytes.NewReader(file), nil, []audit.Expect{e})
		return err
	}
	for seq, hash := range map[int64]audit.Hash{2: c.start.Hash, 3: c.hashes[0], 6: c.hashes[3]} {
		if err := verify(audit.Expect{Writer: "one", Seq: seq, Hash: hash}); err != nil {
			t.Errorf("row %d: %v", seq, err)
		}
	}
	for says, e := range map[string]audit.Expect{
		"another hash":    {Writer: "one", Seq: 3, Hash: c.hashes[1]},
		"a later row":     {Writer: "one", Seq: 7, Hash: c.hashes[3]},
		"one before them": {Writer: "one", Seq: 1, Hash: c.hashes[3]},
		"another writer":  {Writer: "two", Seq: 3, Hash: c.hashes[0]},
	} {
		if err := verify(e); err == nil {
			t.Errorf("%s: verified", says)
		}
	}
}

func TestRowsOfAStoreThatWereTamperedWithAreFound(t *testing.T) {
	key := audit.NewKey()
	check := func(c *chain, heads ...audit.Checkpoint) error {
		v := audit.NewVerifier(key.Public(), nil)
		if c.start.Seq > 0 {
			if err := v.Checkpoint(c.start); err != nil {
				return err
			}
		}
		for _, h := range heads {
			if err := v.Checkpoint(h); err != nil {
				return err
			}
		}
		for i := range c.bodies {
			if _, err := v.Row(c.bodies[i], c.hashes[i]); err != nil {
				return err
			}
		}
		_, err := v.Finish()
		return err
	}
	c := newChain(t, key, "one", 0, 6)
	if err := check(c, c.head(key, 4)); err != nil {
		t.Fatal(err)
	}
	tamper := func(says string, do func(c *chain) []audit.Checkpoint) {
		t.Helper()
		c := newChain(t, key, "one", 0, 6)
		if err := check(c, do(c)...); err == nil {
			t.Errorf("%s: verified", says)
		}
	}
	tamper("a start of its own", func(c *chain) []audit.Checkpoint {
		c.bodies, c.hashes = c.bodies[2:], c.hashes[2:]
		return nil
	})
	tamper("rows removed at the end", func(c *chain) []audit.Checkpoint {
		h := c.head(key, 6)
		c.bodies, c.hashes = c.bodies[:4], c.hashes[:4]
		return []audit.Checkpoint{h}
	})
	tamper("rows changed, with all hashes made anew", func(c *chain) []audit.Checkpoint {
		h := c.head(key, 6)
		c.bodies[1] = bytes.Replace(c.bodies[1], []byte("alice"), []byte("bob"), 1)
		last := c.hashes[0]
		for i := 1; i < 6; i++ {
			last = last.Next(c.bodies[i])
			c.hashes[i] = last
		}
		return []audit.Checkpoint{h}
	})
	tamper("no head", func(*chain) []audit.Checkpoint { return nil })
	tamper("a head by another key", func(c *chain) []audit.Checkpoint { return []audit.Checkpoint{c.head(audit.NewKey(), 6)} })
	tamper("two rows exchanged", func(c *chain) []audit.Checkpoint {
		c.bodies[2], c.bodies[3] = c.bodies[3], c.bodies[2]
		c.hashes[2], c.hashes[3] = c.hashes[3], c.hashes[2]
		return nil
	})
}

func TestARecordStaysWithinItsBound(t *testing.T) {
	long := strings.Repeat("\x01", 4096)
	r := audit.Record{Type: sandbox.EventExec, Command: long, Cwd: long, Path: strings.Repeat("\x01", 20000), Stdout: &audit.Output{Bytes: 1, First: strings.Repeat("\x01", 8000), SHA256: "x"}}
	for range sandbox.MaxEventChanges {
		r.Changes = append(r.Changes, sandbox.FileChange{Path: long})
	}
	b, err := r.Encode()
	if err != nil || len(b) > audit.MaxBody {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	got, err := audit.Decode(b)
	if err != nil || got.Command == "" || got.Stdout.SHA256 != "x" || len(got.Changes) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOutputIsCutWhereNoCharacterIs(t *testing.T) {
	var w excerpt.Writer
	_, _ = w.Write([]byte(strings.Repeat("é", 3000)))
	o := audit.OutputOf(6000, w.Excerpt(), 11)
	if o.Bytes != 6000 || o.First != "ééééé" || !strings.HasSuffix(o.Last, "ééééé") || len(o.SHA256) != 64 {
		t.Errorf("%+v", o)
	}
	if o := audit.OutputOf(6000, w.Excerpt(), 0); o.First != "" || o.Last != "" || o.SHA256 == "" {
		t.Errorf("nothing is to be kept: %+v", o)
	}
	if o := audit.OutputOf(0, nil, 10); o != nil {
		t.Errorf("of nothing: %+v", o)
	}
}

func FuzzVerifyExport(f *testing.F) {
	key := audit.NewKey()
	f.Add(export(f, key, true, newChain(f, key, "one", 0, 2)))
	f.Add(export(f, key, false, newChain(f, key, "one", 0, 2)))
	f.Fuzz(func(t *testing.T, b []byte) {
		public := key.Public()
		_, _ = audit.VerifyExport(bytes.NewReader(b), &public, nil)
	})
}
