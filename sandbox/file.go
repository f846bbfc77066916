// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"io/fs"
	"time"
)

// FileType is the type of a file.
type FileType string

// The types of files.
const (
	RegularFile FileType = "file"
	Directory   FileType = "dir"
	Symlink     FileType = "symlink"
	OtherFile   FileType = "other" // a fifo, a socket, a device
)

// FileInfo is one file. Names and paths, here and in the options below, are Unicode strings that
// stand for any bytes: one that is not UTF-8 is escaped. A path is absolute, or relative to the
// workspace. An operation has exactly the rights of User inside; empty is the unprivileged user.
type FileInfo struct {
	Name    string // the last part of Path
	Path    string // absolute
	Type    FileType
	Size    int64       // in bytes, of a file and a link; else 0
	Mode    fs.FileMode // permission bits, with ModeSetuid, ModeSetgid, ModeSticky
	ModTime time.Time
	UID     int // inside
	GID     int
	Target  string // of a link

	Owner      string            // the name that the sandbox's passwd file has for UID; empty: none
	Group      string            // likewise, of its group file
	TargetType FileType          // what a link finally leads to; empty: nothing that the user can see
	Attributes map[string]string // of a file or a directory; not in lists

	// Version names what a regular file holds, where it was asked for: another content is another version. Empty: not known.
	Version string
}

// FileCondition says how a file has to be for something to be done with it; zero: as it likes. One of the three is set.
type FileCondition struct {
	Versions []string // a regular file of one of these, at most MaxFileVersions
	Any      bool     // there is one
	Absent   bool     // there is none
}

// MaxFileVersions bounds the versions of a condition.
const MaxFileVersions = 16

// IsZero reports whether there is no condition.
func (c FileCondition) IsZero() bool { return len(c.Versions) == 0 && !c.Any && !c.Absent }

// ReadFileOptions configure the reading of a file.
type ReadFileOptions struct {
	User   string
	Offset int64 // of the first byte; beyond the end nothing is read
	Length int64 // of the range; 0 or less: to the end

	Version bool // tell its version, which may take as long as a file's clock stands still, some milliseconds
}

// WriteFileOptions configure the writing of a file.
type WriteFileOptions struct {
	User        string
	Mode        fs.FileMode // permission bits and ModeSticky; 0: those of the file that is replaced, else 0644
	Size        int64       // bytes of the content; -1 or 0: unknown. A different number is fault.Malformed
	MakeParents bool        // make the directories that are missing
	Sync        bool        // return when the file is on the disk, and not up to a second before
	// Attributes are the file's from then on. nil: those of the file that is replaced.
	Attributes map[string]string
	// If is looked at before the content is read, and again just before the new file takes the old one's place: what does not
	// meet it is fault.PreconditionFailed, and stays as it is.
	If FileCondition
}

// ListFilesOptions configure a list of a directory.
type ListFilesOptions struct {
	User  string
	Limit int    // entries; 0: 10,000, at most 100,000
	After string // only entries whose names come after this one; of a tree, whose paths below the directory do
	Depth int    // 2 to 32: also what is in directories below, as deep; 0 and 1: the directory alone
}

// ErrEnough is returned by a callback that wants no more entries.
var ErrEnough = errors.New("no more of the list is wanted")

// Bounds of attributes.
const (
	MaxAttributeKey = 246  // bytes
	MaxAttributes   = 4096 // bytes of all keys and values of a file together
	MaxListDepth    = 32
)

// ChangeFileOptions say what is changed of a file. What is absent stays.
type ChangeFileOptions struct {
	User      string
	Mode      *fs.FileMode // permission bits and ModeSticky
	Owner     string       // a name of the sandbox's passwd file, or a number
	Group     string       // likewise, of its group file
	Recursive bool         // of a directory: all in it, too; links are never followed

	Attributes map[string]string // are set
	Remove     []string          // keys of attributes that are removed
	Replace    bool              // all other attributes are removed, too
}

// FileChanged is what became of a change.
type FileChanged struct {
	File    FileInfo // as it is now
	Changed int64    // files and directories
	Left    []FileLeftOut
	LeftAll int64  // how many could not be changed; Left names the first of them
	Ended   string // why not all was seen: "" if all was, else time or entries
}

// MakeDirOptions configure the making of a directory.
type MakeDirOptions struct {
	User    string
	Parents bool        // make all that are missing; then an existing directory is not an error
	Mode    fs.FileMode // 0: 0755
}

// MoveFileOptions configure the move of a file or a directory.
type MoveFileOptions struct {
	User      string
	Overwrite bool // replace a file, or an empty directory; else what exists is fault.Exists
}

// RemoveFileOptions configure the removal of a file or a directory.
type RemoveFileOptions struct {
	User      string
	Recursive bool // also a directory with all in it; else one that is not empty is fault.State
	If        FileCondition
}

// PackFilesOptions configure the making of a tar archive of files inside.
type PackFilesOptions struct {
	User    string
	Follow  bool     // what links lead to, in their place
	Exclude []string // patterns of names, or with a slash of paths below the top, where ** stands for any directories
}

// UnpackFilesOptions configure the unpacking of a tar archive inside.
type UnpackFilesOptions struct {
	User        string
	Most        int64 // bytes of all files; 0 or less: any
	MakeParents bool  // make the directory, and those above it
	Owners      bool  // as root: files get the owners that the archive says
	Sync        bool  // return when all is on the disk, and not up to a second before
	Outcomes    bool  // tell what became of each entry; each file takes its name when it is complete
}

// FilesPacked reports what is in an archive, or what was made of one.
type FilesPacked struct {
	Entries int64
	Bytes   int64 // of files
	Left    []FileLeftOut
	LeftAll int64 // how many are left out; Left names the first of them
	// Outcomes are what became of each entry in their order, where that was asked for: of as many as there is room for,
	// which are 100,000 at most.
	Outcomes []FileOutcome
}

// FileOutcome is what became of one entry of an archive: it was made whole, or for a Reason not at all.
type FileOutcome struct {
	Path   string
	Bytes  int64
	Reason string
}

// FileLeftOut is what is not in an archive, or was not made of one, and why.
type FileLeftOut struct{ Path, Reason string }

// SearchFilesOptions configure a search below a directory.
type SearchFilesOptions struct {
	User       string
	Pattern    string // a regular expression (RE2) for lines; empty: files are listed
	Glob       string // of names, or with a slash of paths, where ** stands for any directories; empty: all
	IgnoreCase bool
	Depth      int    // 1: only what is in the directory itself; 0: all
	Limit      int    // 0: 100, at most 10,000
	After      string // without a Pattern: Rel of the last that is known already
}

// ReplaceFilesOptions say what is replaced by what.
type ReplaceFilesOptions struct {
	User        string
	Pattern     string
	Replacement string
	Regexp      bool // Pattern is a regular expression (RE2) for whole files, and $1 or ${name} in Replacement its groups
	IgnoreCase  bool
}

// FileReplaced is what became of one file.
type FileReplaced struct {
	Path  string // as it was asked for
	Count int64  // of replacements
	Err   error  // why the file is as it was
}

// FileMatch is a line that was found, or without a Pattern a file.
type FileMatch struct {
	Rel  string // below the directory
	Line int64  // the first is 1; 0 of a file
	Text string // of the line, or what is around the match
	Cut  bool   // the line is longer
	File FileInfo
}

// SearchEnd reports what a search has covered.
type SearchEnd struct {
	Files  int64  // that were read, or listed
	Binary int64  // passed over
	Closed int64  // files and directories that may not be read
	Large  int64  // files of which only the first 64 MiB were read
	Passed int64  // directories that are passed over by their name, as .git and node_modules
	Ended  string // why not all was seen: "" if all was, else limit, time, bytes or entries
}
