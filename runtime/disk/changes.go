// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"archive/tar"
	"slices"

	"sandpit.dev/internal/printable"
	"sandpit.dev/sandbox"
)

// Changes returns how two trees differ: each path that is in one alone, and each that is in both and
// differs in kind, content, mode, owner, time or attributes; of a directory neither the time
// nor what is in it counts. At most limit are given, sorted by path, and all are counted.
func Changes(from, to *Tree, limit int) sandbox.Changes {
	actions := map[string]string{}
	for path, is := range to.entries {
		switch was := from.entries[path]; {
		case was == nil:
			actions[path] = "created"
		case !was.same(is):
			actions[path] = "modified"
		}
	}
	for path := range from.entries {
		if to.entries[path] == nil {
			actions[path] = "deleted"
		}
	}
	paths := make([]string, 0, len(actions))
	for path := range actions {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	c := sandbox.Changes{Files: []sandbox.FileChange{}, Total: len(paths), Complete: true}
	for _, path := range paths[:max(0, min(limit, len(paths)))] {
		f := sandbox.FileChange{Path: "/" + path, Action: actions[path]}
		if is := to.entries[path]; is != nil && is.kind == tar.TypeReg {
			f.Size = is.size
		}
		f.Path, f.Escaped = printable.Name(f.Path)
		c.Files = append(c.Files, f)
	}
	return c
}
