// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"io"
	"os"
	"testing"
)

// What waits to be closed is bounded, and all of it is closed.
func TestWhatWaitsToBeClosedIsBounded(t *testing.T) {
	c := newCloser()
	open := func() *os.File {
		t.Helper()
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	var all []*os.File
	var gone []<-chan struct{}
	for range closeMost + 5 { // and nobody closes
		loose, root := open(), open()
		all = append(all, loose, root)
		c.drop([]io.Closer{loose})
		gone = append(gone, c.add(root))
	}
	if len(c.loose) != closeMost || len(c.pending) != closeMost {
		t.Errorf("%d and %d wait, want %d of each", len(c.loose), len(c.pending), closeMost)
	}
	c.flush()
	for _, over := range gone {
		<-over
	}
	for _, f := range all {
		if f.Close() == nil {
			t.Fatal("one was not closed")
		}
	}
}
