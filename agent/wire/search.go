// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Search says what to look for below a directory.
type Search struct {
	// Pattern is a regular expression (RE2) that lines of files are held against.
	// Without one, what there is is listed.
	Pattern string `json:"pattern,omitempty"`
	// Glob bounds it to some files: of their names, or with a "/" of their paths
	// below the directory, where ** stands for any directories. Escaped, as names.
	Glob  string `json:"glob,omitempty"`
	Fold  bool   `json:"fold,omitempty"`  // upper and lower case are the same
	Depth int    `json:"depth,omitempty"` // 1: only what is in the directory itself; 0: MaxSearchDepth
	Limit int    `json:"limit,omitempty"` // of Found; 0: DefaultSearchSize
	// After is the path of an answer before: only what comes after it. Only
	// without a Pattern.
	After string `json:"after,omitempty"`
}

// Found is a line of a file, or without a Pattern a file.
type Found struct {
	Path string    `json:"path"` // below the directory, escaped
	Line int64     `json:"line,omitempty"`
	Text string    `json:"text,omitempty"` // of the line, around the match; at most MaxSearchText bytes
	Cut  bool      `json:"cut,omitempty"`  // the line is longer
	File *FileInfo `json:"file,omitempty"`
}

// Searched is the Done of OpSearch.
type Searched struct {
	Files  int64  `json:"files"`            // that were read, or listed
	Bytes  int64  `json:"bytes,omitempty"`  // that were read
	Binary int64  `json:"binary,omitempty"` // files that are no text, and were passed over
	Closed int64  `json:"closed,omitempty"` // files and directories that may not be read, or were gone
	Large  int64  `json:"large,omitempty"`  // files of which only the first MaxSearchFile bytes were read
	Passed int64  `json:"passed,omitempty"` // directories that are passed over by their name
	Ended  string `json:"ended,omitempty"`  // why it ended before all was seen: one of the EndedBy
}

// Why a search ended early.
const (
	EndedByLimit   = "limit"   // there is more
	EndedByTime    = "time"    // MaxSearchTime passed
	EndedByBytes   = "bytes"   // MaxSearchBytes were read
	EndedByEntries = "entries" // MaxSearchEntries were looked at, or a directory has more names than are sorted
)

// Bounds of a search. They hold on both sides.
const (
	MaxSearchPattern  = 1000
	DefaultSearchSize = 100
	MaxSearchSize     = 10_000
	MaxSearchText     = 500
	MaxSearchDepth    = 64
	MaxSearchSeconds  = 10
	MaxSearchFile     = 64 << 20
	MaxSearchBytes    = 1 << 30
	MaxFoundBytes     = 4 << 20 // of all that one search gives
	MaxSearchEntries  = 200_000
)
