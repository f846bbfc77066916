// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"path"
	"strings"
	"unicode/utf8"

	"sandpit.dev/agent/wire"
	"sandpit.dev/engine/check"
)

// Bounds of what a request names.
const (
	maxFiles     = 1000
	maxFileBytes = 256 << 10 // of all of them
	maxRevision  = 255
)

// nameText is the text of a name of a file, or of a branch: as in [sandbox.FileInfo].
func nameText(name string) string { return wire.EscapeName(name) }

// checkBranch checks the name of a branch or a tag.
func checkBranch(k *check.Fields, field, name string) {
	switch {
	case name == "":
		k.Bad(field, "is empty; name a branch")
	case len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unprintable) || notInBranch.MatchString(name) || name == "HEAD" || name == "@":
		k.Bad(field, "%q is not a valid branch name", shown(name))
	}
}

// checkRevision checks what names a commit in any of git's ways, as HEAD~2 or v1.0^{}.
func checkRevision(k *check.Fields, field, rev string) {
	if rev == "" {
		return
	}
	if len(rev) > maxRevision || strings.HasPrefix(rev, "-") || !utf8.ValidString(rev) || strings.ContainsFunc(rev, unprintable) || strings.Contains(rev, "..") || strings.HasPrefix(rev, "^") || strings.HasPrefix(rev, ":") {
		k.Bad(field, "%q is not a valid revision: a branch, a tag, a commit, or one before it such as HEAD~1", shown(rev))
	}
}

// checkFiles checks paths of files of a repository. Relative ones are below its directory.
func checkFiles(k *check.Fields, field string, files []string) {
	if len(files) > maxFiles {
		k.Bad(field, "has %d paths, more than %d; name a directory", len(files), maxFiles)
		return
	}
	total := 0
	for _, f := range files {
		if total += len(f); f == "" || strings.IndexByte(f, 0) >= 0 || len(f) > maxPath {
			k.Bad(field, "%q is not a valid path: 1 to %d bytes without a NUL", shown(f), maxPath)
			return
		}
	}
	if total > maxFileBytes {
		k.Bad(field, "has %d bytes, more than %d", total, maxFileBytes)
	}
}

const maxPath = 4096

// pathInput is what a command reads paths from, with [pathOptions].
func pathInput(files []string) []byte {
	var b strings.Builder
	for _, f := range files {
		b.WriteString(path.Clean(wire.UnescapeName(f)))
		b.WriteByte(0)
	}
	return []byte(b.String())
}

// pathOptions has a command read paths from its input: they are no options whatever they are, and any bytes.
func pathOptions() []string { return []string{"--pathspec-from-file=-", "--pathspec-file-nul"} }

// checkLine checks a text of one line, of at most that many bytes.
func checkLine(k *check.Fields, field, text string, most int) {
	switch {
	case len(text) > most:
		k.Bad(field, "has %d bytes, more than %d", len(text), most)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable):
		k.Bad(field, "%q has a character that does not print", shown(text))
	}
}
