// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package layer

import "testing"

func TestAGlanceDiffersByWhatTheRoomIs(t *testing.T) {
	const gib = 1 << 30
	was := sample{storeFree: 8 * gib, hostFree: 8 * gib}
	for _, c := range []struct {
		name string
		now  sample
		room int64
		want bool
	}{
		{"nothing changed", was, 8 * gib, false},
		{"others write on a large disk", sample{storeFree: 8 * gib, hostFree: 8*gib - 100*mib}, 8 * gib, false},
		{"others write much on it", sample{storeFree: 8 * gib, hostFree: 7 * gib}, 8 * gib, true},
		{"others write where room is little", sample{storeFree: 8 * gib, hostFree: 8*gib - 100*mib}, gib, true},
		{"others free space", sample{storeFree: 8 * gib, hostFree: 9 * gib}, 8 * gib, true},
		{"the store takes", sample{storeFree: 7 * gib, hostFree: 8 * gib}, 8 * gib, true},
		{"less than a step", sample{storeFree: 8*gib - coarse + 1, hostFree: 8 * gib}, 0, false},
		{"the file system became read-only", sample{storeFree: 8 * gib, hostFree: 8 * gib, flags: 1}, 8 * gib, true},
	} {
		if got := c.now.differs(was, c.room); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}
