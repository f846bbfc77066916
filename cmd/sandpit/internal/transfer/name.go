// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// maxPath bounds the name of an entry.
const maxPath = 4096

// below returns the path of an entry below the archive's first name, "" for that itself, or why there is none.
func below(name string) (rel, why string) {
	const bad = "its name is no name of a file"
	trimmed := strings.TrimSuffix(name, "/")
	if trimmed == "" || len(name) > maxPath || strings.IndexByte(name, 0) >= 0 {
		return "", bad
	}
	first, rest, more := strings.Cut(trimmed, "/")
	if first == "" || first == ".." {
		return "", bad
	}
	if !more {
		return "", ""
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "." || part == ".." || !filepath.IsLocal(part) || runtime.GOOS == "windows" && strings.ContainsAny(part, `\:`) {
			return "", bad
		}
	}
	return rest, ""
}

// staysBelow reports whether a link that is so many directories below the top of a copy leads to somewhere
// below that top, whatever other such links are on its way: it may go up from where it is, and only
// down from there.
func staysBelow(depth int, target string) bool {
	if target == "" || path.IsAbs(target) || strings.ContainsAny(target, "\\\x00") || runtime.GOOS == "windows" && strings.Contains(target, ":") {
		return false
	}
	up, down := 0, false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "..":
			if up++; down || up > depth {
				return false
			}
		case part != "" && part != ".":
			down = true
		}
	}
	return true
}
