// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package glob matches paths below a directory with patterns.
package glob

import (
	"path"
	"strings"
)

// Glob is a pattern for files: for their names, or where it has a slash for their paths, in which
// ** stands for any directories. The zero value matches all.
type Glob struct {
	parts []string // nil: all
	whole bool     // of the path, not of the name alone
}

// New returns the Glob of a pattern; ok reports whether it is one.
func New(s string) (g Glob, ok bool) {
	s = strings.TrimPrefix(s, "./")
	if s == "" {
		return Glob{}, true
	}
	if !strings.Contains(s, "/") {
		g.parts = []string{s}
	} else {
		g.whole = true
		for _, p := range strings.Split(strings.Trim(s, "/"), "/") {
			if p == "**" && len(g.parts) > 0 && g.parts[len(g.parts)-1] == "**" {
				continue // the same as one
			}
			g.parts = append(g.parts, p)
		}
	}
	for _, p := range g.parts {
		if _, err := path.Match(p, ""); err != nil {
			return g, false
		}
	}
	return g, true
}

// Match reports whether a path below the directory, in its parts, is meant.
func (g *Glob) Match(rel []string) bool {
	switch {
	case g.parts == nil:
		return true
	case !g.whole:
		ok, _ := path.Match(g.parts[0], rel[len(rel)-1])
		return ok
	}
	// fits[i]: the parts so far fit the first i names. One row for each part, so
	// that no pattern takes longer than parts times names.
	fits := make([]bool, len(rel)+1)
	fits[0] = true
	for _, p := range g.parts {
		next := make([]bool, len(rel)+1)
		for i := range next {
			switch {
			case p == "**":
				next[i] = fits[i] || i > 0 && next[i-1]
			case i > 0 && fits[i-1]:
				next[i], _ = path.Match(p, rel[i-1])
			}
		}
		fits = next
	}
	return fits[len(rel)]
}
