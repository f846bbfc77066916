// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"bytes"
	"os"
	"testing"
)

func TestUnwrittenIsWhatWaitsForTheDisk(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	l := mustCreate(t, s, "firstlayer", 0)
	mustCreate(t, s, "otherlayer", 0)
	if got := s.Unwritten("firstlayer"); got != 0 {
		t.Errorf("of an empty layer: %d", got)
	}
	const size = 4 << 20
	if err := os.WriteFile(at(l.Fd(), "upper/file"), bytes.Repeat([]byte("x"), size), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.Unwritten("firstlayer"); got < size || got > 2*size {
		t.Errorf("of a layer with %d bytes that were just written: %d", size, got)
	}
	if got := s.Unwritten("otherlayer"); got != 0 {
		t.Errorf("of its neighbour: %d", got)
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.Unwritten("firstlayer"); got != 0 {
		t.Errorf("after Sync: %d", got)
	}
	for _, id := range []string{"nosuchlayer", "../layers"} {
		if got := s.Unwritten(id); got != -1 {
			t.Errorf("of %s: %d", id, got)
		}
	}
}

func TestUnwrittenIsUnknownOfPlainLayers(t *testing.T) {
	needRoot(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Plain})
	mustCreate(t, s, "firstlayer", 0)
	if got := s.Unwritten("firstlayer"); got != -1 {
		t.Errorf("got %d", got)
	}
}
