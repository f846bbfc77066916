// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package changes tells which files below a directory of a sandbox changed
// while something ran, at a cost that grows with the changes and not with the
// tree.
//
// One fanotify [Group] of the server's watches the overlay file systems of all
// sandboxes that have a [Tracker] open; the file system id in an event tells
// which [Source] it belongs to. The kernel queues an event inside the system
// call that causes it, so a read of the queue after a command's end has every
// change that the command made. A window keeps only the first fact about each
// name (was it there before?) and asks the file system for the rest when it
// ends: the answer is the difference of the tree before and after, not a log.
//
// # What one sandbox costs the others
//
// All share the kernel's queue, so one goroutine reads it and does nothing else: it puts
// each event, as bytes, into the backlog of its source. What the events mean is worked out
// by that source, under its own lock: by a goroutine behind the reader, and by its
// commands and watches. The begin and the end of a window wait until the reader has passed
// what was queued before, and then book their own source's backlog; they do none of the
// work for others' events, and take no lock that another sandbox can make long. A watch
// takes what was booked and never has the queue read; finding the paths for it is the
// server's time, so all watches of a source together rest three times as long as they work.
//
// Who makes more events than can be handled loses its own, and hears of it: its answers
// are not Complete, its watches get [KindDropped]. So it is with the source's share of the
// memory of all backlogs, and, where the kernel's queue itself grows beyond its bound, with
// the sandbox that has most in it: it is not watched for a second. Where the queue is not
// read in time all the same, the answer is not Complete rather than late.
//
// # What an answer means
//
//   - created then deleted: nothing. Deleted then made anew, or replaced by a
//     rename: modified. Renamed: the old name deleted, the new one created.
//     Renamed away and back: nothing.
//   - written, truncated, chmod, chown, utimes, xattr: modified. Opened for
//     writing and closed without a write: nothing. A write through a mapping
//     shows when the mapping's file is closed.
//   - a directory that moved is listed with everything in it, under the old
//     name as deleted and under the new one as created.
//
// # What it cannot see
//
//   - a file that stays mapped past the end of the window;
//   - the other names of a file with several hard links: the name that was used
//     is listed, the others need not be. Where one thread removes and remakes a
//     hard link to the same file, or replaces a name whose file it linked
//     elsewhere, faster than the queue is read, the kernel merges the events;
//     then a name that is there in the end is listed as modified, or as created,
//     and a name that is gone is not listed, or listed as it should be;
//   - which of several renames of directories by one thread replaced an empty one that
//     it had changed before, or whether it removed one of a lower layer that it had changed,
//     all faster than the queue is read: the answer is then not Complete;
//   - a file written within some 10 ms before the window (the file clock's ticks)
//     and in it only opened for writing: listed as modified;
//   - before Linux 6.13 (6.12.10, 6.6.72), on which the kernel does not say which
//     directory was removed: what had been in a directory of the sandbox's own that
//     is gone, and where that was. The directory itself is listed as deleted, the
//     answer is not Complete, and a watch says how much it dropped;
//   - what lies under a mount that the sandbox made inside the directory: the
//     answer is then not Complete.
//
// The package knows nothing of commands, of the agent, or of who owns a
// sandbox; it needs an overlay mounted with index=on,nfs_export=on, root of the
// host, and Linux 5.17 (6.6 for overlays whose uppers share a file system, unless each
// is in a btrfs subvolume of its own: see [CheckIDs]).
package changes

// Action is what happened to a name between the begin and the end of a window.
type Action string

const (
	Created  Action = "created"
	Modified Action = "modified"
	Deleted  Action = "deleted"
)

// Type is the kind of file that a change is about.
type Type string

const (
	File    Type = "file"
	Dir     Type = "dir"
	Symlink Type = "symlink"
	// Other is a fifo, a socket or a device.
	Other Type = "other"
	// Gone is a deleted name that was not a directory: the kernel does not say what else it was.
	Gone Type = ""
)

// Change is the net change of one name.
type Change struct {
	// Path is relative to the tracked directory and always valid UTF-8, see Escaped.
	Path string `json:"path"`
	// Escaped: the name on disk is not valid UTF-8. Each byte that is not part of
	// a valid character is written \xNN (two lower-case hex digits) in Path, and
	// each backslash of the name as two. Otherwise Path is the name as it is.
	Escaped bool   `json:"escaped,omitempty"`
	Action  Action `json:"action"`
	Type    Type   `json:"type,omitempty"`
	// Size in bytes of a file when the window ended; 0 for everything else.
	Size int64 `json:"size"`
}

// Changes is the answer of a window.
type Changes struct {
	// Files is sorted by the bytes of the path; at most [Options.MaxFiles].
	Files []Change
	// Complete is false when something may be missing or stated wrongly: the
	// kernel's queue overflowed, the window outgrew its memory, or a part of the
	// tree could not be looked at.
	Complete bool
	// Total is how many changed; more than Files lists where that is Truncated,
	// and a lower bound where the answer is not Complete.
	Total int
	// Truncated: more changed than Files lists.
	Truncated bool
}
