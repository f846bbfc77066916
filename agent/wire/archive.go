// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Pack is what goes into an archive.
type Pack struct {
	Follow  bool     `json:"follow,omitempty"`  // what links lead to, in their place
	Exclude []string `json:"exclude,omitempty"` // patterns as of package glob: what fits one is passed over, with all in it
}

// Packed is the Done of OpPack.
type Packed struct {
	Entries int64     `json:"entries,omitempty"`
	Bytes   int64     `json:"bytes,omitempty"` // of files
	Left    []LeftOut `json:"left,omitempty"`  // the first MaxLeftOut
	LeftAll int64     `json:"left_all,omitempty"`
}

// Unpacked is the answer to OpUnpack.
type Unpacked = Packed

// Outcome is what became of one entry of an archive: it was made whole, or for a Reason not at all.
type Outcome struct {
	Path   string `json:"path"` // in the archive, escaped
	Bytes  int64  `json:"bytes,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// LeftOut is what is not in an archive, or was not made of one, and why.
type LeftOut struct {
	Path   string `json:"path"` // in the archive, escaped
	Reason string `json:"reason"`
}

// Bounds of archives.
const (
	MaxExclude      = 64      // patterns
	MaxExcludeBytes = 4 << 10 // of each
	MaxLeftOut      = 100     // that are told
	MaxLeftPath     = 400     // bytes of each's path, about
	MaxOutcomes     = 100_000 // that are told one by one,
	MaxOutcomeBytes = 8 << 20 // of about so many bytes
)
