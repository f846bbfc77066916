// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// File is what there is to know of a file.
type File struct {
	Name        string    `json:"name"`
	Path        string    `json:"path,omitempty"`
	Size        int64     `json:"size"`
	IsDir       bool      `json:"isDir"`
	Mode        string    `json:"mode"`        // as ls has it
	Permissions string    `json:"permissions"` // octal
	Owner       string    `json:"owner"`
	Group       string    `json:"group"`
	ModTime     string    `json:"modTime"` // older clients
	ModifiedAt  time.Time `json:"modifiedAt"`
}

// Match is a line that has what was looked for.
type Match struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Content string `json:"content"`
}

// Found are files whose names match.
type Found struct {
	Files []string `json:"files"`
}

// Replace replaces text in files.
type Replace struct {
	Files    []string `json:"files"`
	Pattern  string   `json:"pattern"`
	NewValue *string  `json:"newValue"`
}

// Replaced is what became of one file.
type Replaced struct {
	File    string `json:"file"`
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty"`
}

// Paths are files that are downloaded together.
type Paths struct {
	Paths []string `json:"paths"`
}

// Uploaded is what became of one upload.
type Uploaded struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Type string `json:"type"`
}

// Dir is a directory.
type Dir struct {
	Dir string `json:"dir"`
}
