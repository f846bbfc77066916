// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

// MaxLost bounds Lost.Some.
const MaxLost = 3

// Lost is the answer to OpLost: what was changed of the root outside of the disk since the agent began.
type Lost struct {
	Entries int      `json:"entries,omitempty"` // files that are new or changed, and directories of which something was removed
	Some    []string `json:"some,omitempty"`    // paths of the first few
	More    bool     `json:"more,omitempty"`    // not all was looked at
}
