// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package changed tells which files below a directory changed while something ran, for sandboxes whose
// files the host does not see. It looks at the tree before and after, at the kernel's own times of
// change, which nobody inside can set, and compares.
//
// # What it costs
//
// Two looks, of which each reads all directories and asks for the state of all files: some 3 µs a file.
// Between them one number for each name is kept, and nothing is open. A tree with more than
// [MaxEntries] files is not looked at, and not looked at again for a while: its answers are not
// complete, and cost nothing.
//
// # What an answer means
//
//   - created then deleted: nothing. Deleted then made anew, or replaced by a rename: modified. Renamed:
//     the old name deleted, the new one created; away and back: modified.
//   - written, truncated, chmod, chown, utimes, xattr, another name made or removed: modified. Of a
//     directory chmod, chown and utimes; an xattr where nothing below it changed.
//   - a directory that moved is listed with everything in it.
//   - an open for writing of a file from the sandbox's image, whether or not it is written to: modified,
//     since an overlay copies the file then.
//
// # What it cannot see
//
//   - a write through a mapping that was written to before the window, and by the kernel not written to the disk since;
//   - what lies on another mount inside, or below more than [MaxDepth] directories: the answer is then not complete.
package changed
