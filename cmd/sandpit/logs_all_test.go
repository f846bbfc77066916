// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"sync"
	"testing"
)

func TestLinesOfAProcessComeWholeAndMarked(t *testing.T) {
	var out strings.Builder
	p := &prefixed{to: &out, mu: new(sync.Mutex), before: []byte("id  ")}
	for _, piece := range []string{"a\nb", "c", "\n\n", "", "no end"} {
		if n, err := p.Write([]byte(piece)); err != nil || n != len(piece) {
			t.Errorf("%q: %d, %v", piece, n, err)
		}
	}
	if want := "id  a\nid  bc\nid  \n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if err := p.flush(); err != nil || !strings.HasSuffix(out.String(), "id  no end\n") {
		t.Errorf("at the end: %q, %v", out.String(), err)
	}
	// A line without an end is not held for ever.
	out.Reset()
	if _, err := p.Write([]byte(strings.Repeat("x", 3*maxLine))); err != nil || out.Len() < 2*maxLine || len(p.line) > maxLine {
		t.Errorf("%d bytes are written, and %d held: %v", out.Len(), len(p.line), err)
	}
}
