// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

// ArchiveType is the media type of archives of files.
const ArchiveType = "application/x-tar"

// LeftOutTrailer is the trailer of an archive that says what is not in it, as an Unpacked in JSON.
const LeftOutTrailer = "Sandpit-Left-Out"

// Unpacked is what was made of an archive, or is in one.
type Unpacked struct {
	Entries      int64     `json:"entries" jsonschema:"of the archive"`
	Bytes        int64     `json:"bytes" jsonschema:"of all files"`
	LeftOut      []LeftOut `json:"left_out" jsonschema:"the first entries that were not made"`
	LeftOutTotal int64     `json:"left_out_total" jsonschema:"how many were not made"`

	Outcomes []Outcome `json:"outcomes,omitempty" jsonschema:"with outcomes=true: what became of each entry, in their order, of the first 100000"`
}

// Outcome is what became of one entry of an archive: it was made whole, or for a reason not at all.
type Outcome struct {
	Path   string `json:"path" jsonschema:"in the archive"`
	Bytes  int64  `json:"bytes"`
	Reason string `json:"reason,omitempty" jsonschema:"why it was not made; absent: it was"`
}

// LeftOut is an entry that was not made, and why.
type LeftOut struct {
	Path   string `json:"path" jsonschema:"in the archive"`
	Reason string `json:"reason"`
}
