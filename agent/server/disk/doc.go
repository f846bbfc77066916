// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package disk reads the directories of a sandbox's disk as one archive, and fills them from one. It is a part of the agent, for a
// server that does not see the files.
//
// The archive is a tar stream whose names begin with those of the directories. It has owners, modes, times in nanoseconds, hard links,
// users' attributes, access lists and holes, but neither sockets nor devices. The files and archives are untrusted: no link is followed, and nothing is
// read or made outside of the directories.
package disk

// PAX records of an archive, beside that of package sparse.
const (
	attributeRecord = "SCHILY.xattr." // followed by an attribute's name
	// bareRecord is followed by the name in hex of an attribute that has no value, or a "=" in its name.
	bareRecord = "SANDPIT.xattr."
)

// maxPath bounds the path of an entry in bytes.
const maxPath = 64 << 10
