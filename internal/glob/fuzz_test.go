// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package glob_test

import (
	"strings"
	"testing"

	"sandpit.dev/internal/glob"
)

// FuzzGlob holds that a pattern without signs is a path, and that ** at the top changes nothing of what fits.
func FuzzGlob(f *testing.F) {
	for _, s := range []string{"*.go", "**/a", "a/**/b", "[", "a\\", "./x", "**/**/**/**/**/**/x", "[^]"} {
		f.Add(s, "a/b/x.go")
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		parts := strings.Split(path, "/")
		g, ok := glob.New(pattern)
		if !ok {
			return
		}
		fits := g.Match(parts)
		if !strings.Contains(pattern, "/") || strings.HasPrefix(pattern, "./") {
			return
		}
		if deep, ok := glob.New("**/" + strings.TrimLeft(pattern, "/")); ok && fits && !deep.Match(parts) {
			t.Errorf("%q fits %q, and below any directory it does not", pattern, path)
		}
	})
}
