// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package disk reads the directories of a sandbox's disk as one archive, and fills them from one. It is a part of the agent, for a
// server that does not see the files.
//
// The archive is a tar stream whose names begin with those of the directories: owners, modes, times in nanoseconds, names of the same file,
// users' attributes, access lists and holes. Sockets and devices are left out. What is read belongs to untrusted code, and so does what an
// archive says: no link is followed, and nothing is read or made outside of the directories.
package disk

// PAX records of an archive. No reader that does not know them is the worse for it.
const (
	attributeRecord = "SCHILY.xattr." // followed by an attribute's name
	// bareRecord is followed by an attribute's name in hex: of one that has no value, or a "=" in its name.
	bareRecord = "SANDPIT.xattr."
)

// maxPath bounds the path of an entry in bytes.
const maxPath = 64 << 10
