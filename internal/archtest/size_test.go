// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// size is how much code a package has, without its tests.
type size struct{ files, lines int }

// packageLimit is the most that one package may have: what a person can hold in mind.
var packageLimit = size{files: 60, lines: 10_000}

func TestPackagesStaySmall(t *testing.T) {
	for path, p := range packages(t) {
		has := sizeOf(t, p)
		if has.files > packageLimit.files || has.lines > packageLimit.lines {
			t.Errorf("%s has %d files and %d lines, at most %d and %d: make a part of it a package",
				strings.TrimPrefix(path, module+"/"), has.files, has.lines, packageLimit.files, packageLimit.lines)
		}
	}
}

func sizeOf(t *testing.T, p pkg) size {
	t.Helper()
	s := size{files: len(p.GoFiles)}
	for _, name := range p.GoFiles {
		b, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		s.lines += bytes.Count(b, []byte("\n"))
	}
	return s
}
