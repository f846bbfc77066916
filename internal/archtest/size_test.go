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

// oversized are the packages above packageLimit, with the most that each may have. The list only
// shrinks: lower a figure when its package gets smaller, and never add to it.
var oversized = map[string]size{
	"engine": {61, 10_560},
}

// slack is how far a package may shrink before its figures in oversized must follow.
var slack = size{files: 1, lines: 200}

func TestPackagesStaySmall(t *testing.T) {
	all := packages(t)
	for path, p := range all {
		rel := strings.TrimPrefix(path, module+"/")
		has := sizeOf(t, p)
		most, listed := oversized[rel]
		switch {
		case !listed && (has.files > packageLimit.files || has.lines > packageLimit.lines):
			t.Errorf("%s has %d files and %d lines, at most %d and %d: make a part of it a package",
				rel, has.files, has.lines, packageLimit.files, packageLimit.lines)
		case listed && (has.files > most.files || has.lines > most.lines):
			t.Errorf("%s has %d files and %d lines, at most %d and %d: it is oversized already, and may only shrink",
				rel, has.files, has.lines, most.files, most.lines)
		case listed && has.files <= packageLimit.files && has.lines <= packageLimit.lines:
			t.Errorf("%s is within the limit of packages: remove it from oversized", rel)
		case listed && (has.files+slack.files < most.files || has.lines+slack.lines < most.lines):
			t.Errorf("%s has %d files and %d lines: lower its figures in oversized, which are %d and %d",
				rel, has.files, has.lines, most.files, most.lines)
		}
	}
	for rel := range oversized {
		if _, ok := all[module+"/"+rel]; !ok {
			t.Errorf("%s is no package: remove it from oversized", rel)
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
