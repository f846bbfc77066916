// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Change is what OpChange changes of a file. What is absent stays.
type Change struct {
	Mode  *uint32 `json:"mode,omitempty"`  // permission bits, with 01000
	Owner string  `json:"owner,omitempty"` // a name of the sandbox's passwd file, or a number
	Group string  `json:"group,omitempty"`
	// Attributes are set, and those that Remove names are removed. With Replace all others are, too.
	Attributes map[string]string `json:"attributes,omitempty"`
	Remove     []string          `json:"remove,omitempty"`
	Replace    bool              `json:"replace,omitempty"`
	Recursive  bool              `json:"recursive,omitempty"` // of a directory: all in it, too
}

// FileChanged is what became of a Change.
type FileChanged struct {
	File    FileInfo  `json:"file"`
	Changed int64     `json:"changed"`        // files and directories
	Left    []LeftOut `json:"left,omitempty"` // the first MaxLeftOut that could not be changed
	LeftAll int64     `json:"left_all,omitempty"`
	Ended   string    `json:"ended,omitempty"` // one of the EndedBy, where not all was seen
}

// Bounds of attributes and of changes. They hold on both sides.
const (
	MaxAttributeKey = 246       // bytes
	MaxAttributes   = 4096      // bytes of all keys and values of a file together
	MaxAccountName  = 64        // bytes of the name of an owner or a group
	MaxListDepth    = 32        // levels of a tree that is listed
	MaxChangedAll   = 1_000_000 // files that one change looks at
	MaxChangeTime   = 60        // seconds that one change takes
	MaxName         = 255       // bytes
)
