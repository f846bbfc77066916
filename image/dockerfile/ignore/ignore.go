// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package ignore says which files of a directory a build leaves out: what its .dockerignore names. It knows nothing of
// builds, and is the same for who sends a directory and for who gets it.
package ignore

import (
	"bytes"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"sandpit.dev/fault"
)

// File is the name of the file that says what a context leaves out.
const File = ".dockerignore"

// Outside begins the name of a Dockerfile in a context that is not one of the directory's own files.
const Outside = ".dockerfile."

// MaxBytes bounds it.
const MaxBytes = 1 << 20

// List says which files a context leaves out. It is for one goroutine.
type List struct {
	m *patternmatcher.PatternMatcher
}

// Parse reads a .dockerignore; an empty text leaves out nothing.
func Parse(text []byte) (*List, error) {
	patterns, err := ignorefile.ReadAll(bytes.NewReader(text))
	if err == nil {
		var m *patternmatcher.PatternMatcher
		if m, err = patternmatcher.New(patterns); err == nil {
			return &List{m}, nil
		}
	}
	return nil, fault.New(fault.Invalid, "%s cannot be read: %v", File, err)
}

// Match reports whether a path below the context's top is left out, and whether all that is below it
// is, too.
func (i *List) Match(name string) (out, all bool, err error) {
	out, err = i.m.MatchesOrParentMatches(name)
	if err != nil {
		return false, false, fault.New(fault.Invalid, "%s cannot be read: %v", File, err)
	}
	return out, out && !i.m.Exclusions(), nil
}
