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

	Owner      string            `json:"owner,omitempty" jsonschema:"the name that the sandbox's passwd file has for uid; absent: none"`
	Group      string            `json:"group,omitempty" jsonschema:"the name that the sandbox's group file has for gid; absent: none"`
	TargetType string            `json:"target_type,omitempty" jsonschema:"what a symlink finally leads to: file, dir or other; absent: nothing that the user can see"`
	Attributes map[string]string `json:"attributes,omitempty" jsonschema:"text that was kept with the file; not in listings"`
	Version    string            `json:"version,omitempty" jsonschema:"of what a regular file holds, for If-Match in quotes; another content is another version. Not in listings"`
}

// FileContent is a file with its bytes, for clients that need JSON.
type FileContent struct {
	Path     string `json:"path"`
	Content  string `json:"content"`
	Encoding string `json:"encoding" jsonschema:"base64"`
	Size     int64  `json:"size" jsonschema:"in bytes, before encoding"`
	Version  string `json:"version,omitempty" jsonschema:"for If-Match in quotes, as the header Etag has it"`
}

// WriteFile asks to write a file from JSON.
type WriteFile struct {
	Path     *string `json:"path,omitempty" jsonschema:"absolute, or relative to /workspace; may stand in the query instead"`
	Content  *string `json:"content,omitempty" jsonschema:"the whole content"`
	Encoding *string `json:"encoding,omitempty" jsonschema:"base64 or utf-8 (the default)"`
	Mode     *string `json:"mode,omitempty" jsonschema:"permissions in octal; the default is 0644, or those of the file that is replaced"`
	User     *string `json:"user,omitempty" jsonschema:"an account of the sandbox, by name or number; left out: its own user"`
	Sync     bool    `json:"sync,omitempty" jsonschema:"answer when the file is on the disk, where a power cut does not take it, and not up to a second before"`

	Attributes map[string]string `json:"attributes,omitempty" jsonschema:"text to keep with the file, 4096 bytes of keys and values in all; the default are those of the file that is replaced"`
}

// ChangeFile asks to change what is known of a file, and not its content. What is absent stays.
type ChangeFile struct {
	Mode      *string `json:"mode,omitempty" jsonschema:"permissions in octal"`
	Owner     string  `json:"owner,omitempty" jsonschema:"a name of the sandbox's passwd file, or a number; to give a file away takes the user root"`
	Group     string  `json:"group,omitempty" jsonschema:"a name of the sandbox's group file, or a number"`
	Recursive bool    `json:"recursive,omitempty" jsonschema:"of a directory: all in it, too; links are never followed"`

	Attributes        map[string]string `json:"attributes,omitempty" jsonschema:"text to keep with the file, 4096 bytes of keys and values in all"`
	RemoveAttributes  []string          `json:"remove_attributes,omitempty" jsonschema:"keys of attributes to remove"`
	ReplaceAttributes bool              `json:"replace_attributes,omitempty" jsonschema:"remove all other attributes, too"`
}

// FileChanged is what became of a change.
type FileChanged struct {
	File         FileInfo  `json:"file" jsonschema:"as it is now"`
	Changed      int64     `json:"changed" jsonschema:"files and directories that were changed"`
	LeftOut      []LeftOut `json:"left_out" jsonschema:"the first that could not be changed"`
	LeftOutTotal int64     `json:"left_out_total" jsonschema:"how many could not be changed"`
	Ended        string    `json:"ended,omitempty" jsonschema:"why not all was seen: time or entries; absent: all was"`
}

// MakeDir asks for a directory.
type MakeDir struct {
	Path    string  `json:"path" jsonschema:"absolute, or relative to /workspace"`
	Parents *bool   `json:"parents,omitempty" jsonschema:"make missing parents, and take an existing directory for a success; the default is true"`
	Mode    *string `json:"mode,omitempty" jsonschema:"permissions in octal; the default is 0755"`
	User    *string `json:"user,omitempty" jsonschema:"an account of the sandbox, by name or number; left out: its own user"`
}

// MoveFile asks to rename or move a file or a directory.
type MoveFile struct {
	From      string  `json:"from" jsonschema:"absolute, or relative to /workspace"`
	To        string  `json:"to" jsonschema:"absolute, or relative to /workspace: the new name itself"`
	Overwrite bool    `json:"overwrite,omitempty" jsonschema:"replace what is at to"`
	User      *string `json:"user,omitempty" jsonschema:"an account of the sandbox, by name or number; left out: its own user"`
}

// FoundFiles is what a search for names has found.
type FoundFiles struct {
	Path  string     `json:"path" jsonschema:"the directory that was searched, absolute"`
	Files []FileInfo `json:"files"`
	SearchEnd
}

// FoundLines is what a search in files has found.
type FoundLines struct {
	Path    string      `json:"path" jsonschema:"the directory that was searched, absolute"`
	Matches []FoundLine `json:"matches"`
	SearchEnd
}

// FoundLine is a line that matches.
type FoundLine struct {
	Path string `json:"path" jsonschema:"of the file, absolute"`
	Line int64  `json:"line" jsonschema:"the first is 1"`
	Text string `json:"text" jsonschema:"of the line, or what is around the match; at most 500 bytes"`
	Cut  bool   `json:"cut,omitempty" jsonschema:"the line is longer"`
}

// SearchEnd says what a search has seen.
type SearchEnd struct {
	Searched int64  `json:"searched" jsonschema:"files that were read, or listed"`
	Skipped  int64  `json:"skipped" jsonschema:"binary files, directories like .git and node_modules, and what the user may not read"`
	Ended    string `json:"ended,omitempty" jsonschema:"why not all was seen: limit, time, bytes or entries; absent: all was"`
}

// ReplaceInFiles asks to replace text in files.
type ReplaceInFiles struct {
	Files       []string `json:"files" jsonschema:"1 to 1000 paths, absolute, or relative to /workspace"`
	Pattern     string   `json:"pattern" jsonschema:"a text, or with regex a regular expression (RE2)"`
	Replacement string   `json:"replacement" jsonschema:"with regex $1 or ${name} stand for groups"`
	Regex       bool     `json:"regex,omitempty" jsonschema:"the expression is held against whole files: (?m) has ^ and $ mean lines"`
	IgnoreCase  bool     `json:"ignore_case,omitempty"`
	User        *string  `json:"user,omitempty" jsonschema:"an account of the sandbox, by name or number; left out: its own user"`
}

// FilesReplaced is what became of files in which text was to be replaced.
type FilesReplaced struct {
	Files        []FileReplaced `json:"files" jsonschema:"in the order in which they were named"`
	Changed      int            `json:"changed" jsonschema:"files"`
	Failed       int            `json:"failed" jsonschema:"files, which are as they were"`
	Replacements int64          `json:"replacements" jsonschema:"in all files"`
}

// FileReplaced is what became of one file: all of it was replaced, or nothing.
type FileReplaced struct {
	Path         string `json:"path" jsonschema:"as it was named"`
	Replacements int64  `json:"replacements"`
	Code         string `json:"code,omitempty" jsonschema:"of the error; absent: there was none"`
	Error        string `json:"error,omitempty"`
	Remedy       string `json:"remedy,omitempty"`
}

// CreateFileLink asks for a link to one file, for who has no token.
type CreateFileLink struct {
	Path           string `json:"path" jsonschema:"absolute, or relative to /workspace"`
	Write          bool   `json:"write,omitempty" jsonschema:"to write the file, and not to read it"`
	ExpiresSeconds int    `json:"expires_seconds,omitempty" jsonschema:"60 to 604800; default 3600"`
	MaxBytes       int64  `json:"max_bytes,omitempty" jsonschema:"with write: the most that the file may have; default 100 MiB"`
}

// FileLink is a link to one file.
type FileLink struct {
	URL       string    `json:"url" jsonschema:"whoever has it can use it: it is a secret"`
	Method    string    `json:"method" jsonschema:"GET or PUT"`
	Path      string    `json:"path" jsonschema:"absolute, inside the sandbox"`
	MaxBytes  int64     `json:"max_bytes,omitempty"`
	ExpiresAt time.Time `json:"expires_at"`
}

// FilePage is one page of a directory of a disk at a point in time.
type FilePage struct {
	Items      []FileInfo `json:"items" jsonschema:"in the order of the names, by their bytes"`
	NextCursor *string    `json:"next_cursor" jsonschema:"for the next page; null at the end"`
}

// TextDiff is what differs in the text of a file between two points in time.
type TextDiff struct {
	From     string     `json:"from" jsonschema:"as it was asked for; base: the image"`
	To       string     `json:"to" jsonschema:"as it was asked for; now: the sandbox as it is"`
	Path     string     `json:"path" jsonschema:"as it was asked for"`
	FromFile *FileInfo  `json:"from_file" jsonschema:"null: there was none"`
	ToFile   *FileInfo  `json:"to_file" jsonschema:"null: there is none"`
	Kind     string     `json:"kind" jsonschema:"text: see hunks; same: nothing differs; binary: the files differ, and one has a NUL or is not UTF-8; too_large: one has more than 2 MiB or 100000 lines, and was not looked at; no_file: one is a directory, a link or something else without text"`
	Hunks    []TextHunk `json:"hunks"`

	Added     int  `json:"added" jsonschema:"lines, also of hunks that are left out"`
	Removed   int  `json:"removed" jsonschema:"lines, also of hunks that are left out"`
	Truncated bool `json:"truncated,omitempty" jsonschema:"hunks has the first 2 MiB"`
}

// TextHunk is lines that differ, with up to three around them that do not, as unified diffs have them.
type TextHunk struct {
	FromLine  int      `json:"from_line" jsonschema:"the first line is 1"`
	FromLines int      `json:"from_lines"`
	ToLine    int      `json:"to_line"`
	ToLines   int      `json:"to_lines"`
	Lines     []string `json:"lines" jsonschema:"each begins with a space, - or +, and has no line end; one that begins with a backslash says that the line before it has none in its file"`
}
