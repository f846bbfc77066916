// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package excerpt_test

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"testing"

	"sandpit.dev/internal/excerpt"
)

func TestBothEndsOfAStreamAreKeptHoweverItComes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 2000 {
		all := make([]byte, random.IntN(4*excerpt.Most))
		for i := range all {
			all[i] = byte(random.Uint32())
		}
		var w excerpt.Writer
		for rest := all; len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			if round%2 == 0 {
				n = min(n, 1+random.IntN(900))
			}
			if wrote, err := w.Write(rest[:n]); wrote != n || err != nil {
				t.Fatalf("Write of %d bytes: %d, %v", n, wrote, err)
			}
			rest = rest[n:]
		}
		got := w.Excerpt()
		if len(all) == 0 {
			if got != nil {
				t.Fatalf("an excerpt of nothing: %+v", got)
			}
			continue
		}
		first := all[:min(len(all), excerpt.Most)]
		last := all[max(len(first), len(all)-excerpt.Most):]
		sum := sha256.Sum256(all)
		if !bytes.Equal(got.First, first) || !bytes.Equal(got.Last, last) || !bytes.Equal(got.SHA256, sum[:]) || got.Bytes != int64(len(all)) {
			t.Fatalf("round %d: of %d bytes: first %d, last %d, bytes %d", round, len(all), len(got.First), len(got.Last), got.Bytes)
		}
		if !got.Valid() {
			t.Fatalf("%d bytes: the excerpt is not valid", len(all))
		}
	}
}

func TestExcerptsThatNoWriterMadeAreNotValid(t *testing.T) {
	sum := make([]byte, sha256.Size)
	for name, e := range map[string]excerpt.Excerpt{
		"without bytes":     {SHA256: sum},
		"with a short hash": {Bytes: 1, SHA256: sum[1:], First: []byte("a")},
		"too long":          {Bytes: 1, SHA256: sum, First: []byte("ab")},
		"without its end":   {Bytes: excerpt.Most + 1, SHA256: sum, First: make([]byte, excerpt.Most)},
		"negative":          {Bytes: -1, SHA256: sum},
	} {
		if e.Valid() {
			t.Errorf("an excerpt %s is valid", name)
		}
	}
}
