// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzArtifact holds that no address of an artifact leads above the artifacts of its run.
func FuzzArtifact(f *testing.F) {
	for _, s := range []string{Root + "a/b/c.png", Root + "a/latest/", Root + "a/b/%2e%2e/c", Root + "a/b/..%2f..", Root + "a/b//c", Root, Root + "%00/b/c", Root + "../b/c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, escaped string) {
		of, run, file, err := parse(escaped)
		if err != nil {
			return
		}
		if file = strings.TrimSuffix(file, "/"); file != "" && !filepath.IsLocal(file) || strings.ContainsAny(of+run, "/\x00") || of == ".." || run == ".." {
			t.Errorf("%q is %q of %q, %q", escaped, file, of, run)
		}
	})
}
