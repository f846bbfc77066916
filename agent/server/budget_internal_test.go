// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import "testing"

// A log that is being cut takes room twice, and processes begin all the same.
func TestProcessesBeginWhileALogIsCut(t *testing.T) {
	const limit = 4 << 20
	b := budget{srv: new(Server), limit: limit, live: limit / 4 * 3, loaded: true, cutting: true}
	lent := b.lend(limit)
	if lent < minLog {
		t.Errorf("%d bytes were lent of %d", lent, limit/4)
	}
	for n := range 8 {
		if err := b.begin(); err != nil {
			t.Fatalf("process %d, with %d bytes lent: %v", n, lent, err)
		}
	}
}
