// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Replace is what OpReplace replaces in files.
type Replace struct {
	Files       []string `json:"files"` // escaped, as paths
	Pattern     string   `json:"pattern"`
	Replacement string   `json:"replacement,omitempty"`
	// Regexp has Pattern be a regular expression (RE2), that a whole file is held against, and Replacement stand for its
	// groups by $1 or ${name}. Else both are taken as they are.
	Regexp bool `json:"regexp,omitempty"`
	Fold   bool `json:"fold,omitempty"` // upper and lower case are the same
}

// Replaced is what became of one file.
type Replaced struct {
	Path  string `json:"path"` // as it was asked for
	Count int64  `json:"count,omitempty"`
	Error *Error `json:"error,omitempty"` // the file is as it was
}

// Bounds of a replacement. They hold on both sides.
const (
	MaxReplaceFiles   = 1000
	MaxReplacePaths   = 256 << 10 // bytes of all paths
	MaxReplacement    = 64 << 10
	MaxReplaceFile    = 16 << 20  // bytes of a file, before and after
	MaxReplaceWork    = 128 << 20 // bytes of a file times what the pattern weighs
	MaxReplaceSeconds = 30        // of all files; the one that is being replaced in is completed
	MaxReplaceMessage = 400       // bytes of an Error's message and remedy
)
