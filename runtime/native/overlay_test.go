// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"strings"
	"testing"

	"sandpit.dev/linux/layer"
)

// An overlay that keeps times of access spends a third of opening and reading a small
// file on whether one is to be written.
func TestNoTimeOfAccessIsKept(t *testing.T) {
	needRoot(t)
	for _, kind := range []layer.Kind{"", layer.Plain} {
		t.Run("Layers"+string(kind), func(t *testing.T) {
			d := open(t, t.TempDir(), kind)
			t.Cleanup(func() { _ = d.Close() })
			i := box(t, d)
			const old = "touch -a -d @1000 f; cat f >/dev/null; stat -c %X f"
			for _, run := range []struct{ user, dir string }{{"", "/workspace"}, {"", "/tmp"}, {"root", "/opt"}} {
				if got := sh(t, i, run.user, "cd "+run.dir+"; echo x > f; "+old); strings.TrimSpace(got) != "1000" {
					t.Errorf("in %s, as %q: a read left the time of access %q, want that of before, 1000", run.dir, run.user, got)
				}
			}
		})
	}
}
