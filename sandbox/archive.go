// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// Archive says where the disk of a sandbox is packed. It is of use once it has a Digest: until then
// it is being written.
type Archive struct {
	ID    ID     // its name in Place; zero: there is none
	Place string // "directory /srv/archive", "bucket B at https://…"

	Digest      string    // "sha256:" and 64 hex digits, of the packed bytes
	PackedBytes int64     // as it is kept
	Bytes       int64     // of what it unpacks to, see package engine/archive
	At          time.Time // since when it is whole
}

// Whole reports whether the archive was written to its end, and read back.
func (a Archive) Whole() bool { return a.Digest != "" }

// Down reports whether a sandbox in this state has no processes, and is at rest with all that it holds.
func (s State) Down() bool { return s == Stopped || s == Archived }
