// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// FileEntry is one row of a plain listing.
type FileEntry struct {
	Name string `json:"name"`
	Type string `json:"type" jsonschema:"file, dir, symlink or other"`
	Size int64  `json:"size" jsonschema:"in bytes"`
}

// FileInfo is all about one file.
type FileInfo struct {
	Name       string    `json:"name"`
	Path       string    `json:"path" jsonschema:"absolute, inside the sandbox"`
	Type       string    `json:"type" jsonschema:"file, dir, symlink or other"`
	Size       int64     `json:"size" jsonschema:"in bytes"`
	Mode       string    `json:"mode" jsonschema:"permissions in octal (0644)"`
	ModifiedAt time.Time `json:"modified_at"`
	UID        int       `json:"uid"`
	GID        int       `json:"gid"`
	Target     string    `json:"target,omitempty" jsonschema:"where a symlink points"`
}

// FileContent is a file with its bytes, for clients that need JSON.
type FileContent struct {
	Path     string `json:"path"`
	Content  string `json:"content"`
	Encoding string `json:"encoding" jsonschema:"base64"`
	Size     int64  `json:"size" jsonschema:"in bytes, before encoding"`
}

// WriteFile asks to write a file from JSON.
type WriteFile struct {
	Path     *string `json:"path,omitempty" jsonschema:"absolute, or relative to /workspace; may stand in the query instead"`
	Content  *string `json:"content,omitempty" jsonschema:"the whole content"`
	Encoding *string `json:"encoding,omitempty" jsonschema:"base64 or utf-8 (the default)"`
	Mode     *string `json:"mode,omitempty" jsonschema:"permissions in octal; the default is 0644, or those of the file that is replaced"`
	User     *string `json:"user,omitempty" jsonschema:"sandbox (the default) or root"`
	Sync     bool    `json:"sync,omitempty" jsonschema:"answer when the file is on the disk, where a power cut does not take it, and not up to a second before"`
}

// MakeDir asks for a directory.
type MakeDir struct {
	Path    string  `json:"path" jsonschema:"absolute, or relative to /workspace"`
	Parents *bool   `json:"parents,omitempty" jsonschema:"make missing parents, and take an existing directory for a success; the default is true"`
	Mode    *string `json:"mode,omitempty" jsonschema:"permissions in octal; the default is 0755"`
	User    *string `json:"user,omitempty" jsonschema:"sandbox (the default) or root"`
}

// MoveFile asks to rename or move a file or a directory.
type MoveFile struct {
	From      string  `json:"from" jsonschema:"absolute, or relative to /workspace"`
	To        string  `json:"to" jsonschema:"absolute, or relative to /workspace: the new name itself"`
	Overwrite bool    `json:"overwrite,omitempty" jsonschema:"replace what is at to"`
	User      *string `json:"user,omitempty" jsonschema:"sandbox (the default) or root"`
}
