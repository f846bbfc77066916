// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package layer

import "strings"

// An archive of a snapshot is a tar stream in the form of an OCI image layer: a file
// of the image that was deleted is an empty one with whiteoutPrefix before its name,
// and a directory that hides the image's has one of the name opaqueMarker in it.
const (
	whiteoutPrefix = ".wh."
	opaqueMarker   = ".wh..wh..opq"
	reservedPrefix = ".wh..wh." // of other things than deleted files
)

// PAX records of an archive. Those that are ours are for what has no place in the form,
// and no reader that does not know them is the worse for it.
const (
	attrRecord = "SCHILY.xattr." // followed by the attribute's name
	// attrRecordHex is followed by the name of an attribute in hex: one that has no
	// value, or a "=" in its name.
	attrRecordHex = "SANDPIT.xattr."
	// literalRecord: the name is what it says, in spite of the whiteoutPrefix.
	literalRecord = "SANDPIT.literal"
)

// maxArchivePath bounds the path of an entry in bytes: each one is read as a whole.
const maxArchivePath = 64 << 10

// portable reports whether an archive has an attribute: what programs inside set. What
// the overlay keeps for itself is told by whiteouts, and what gives rights is not taken
// elsewhere.
func portable(attr string) bool {
	return strings.HasPrefix(attr, "user.") || attr == "system.posix_acl_access" || attr == "system.posix_acl_default"
}
