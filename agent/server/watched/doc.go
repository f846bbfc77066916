// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package watched tells of changes below directories as they happen, for sandboxes whose files the
// host does not see. It has one inotify instance, which all watches share and which is there while any is open:
// an Engine's containers have few of them together.
//
// inotify watches single directories. The hub keeps them as a tree in which each has the name that it had
// when the event that is being read was queued, so that a path is the one that the change was made
// under. A directory that is new is watched when the hub reads of it, and then read: what was put into it before
// is told as created, once. Of what is in a directory that was moved in, that is told which changed since the
// queue was last empty.
//
// # Bounds
//
// At most [MaxDirs] directories are watched: a watch whose tree has more ends with fault.Exhausted. A watch that is
// read too slowly loses events, and is told how many. Where the kernel's queue overflows, all are told so; the
// hub rests, reads the tree anew, and goes on.
//
// # What it cannot see
//
//   - writes through a mapping, and a change under another name of a file, outside of the watched directory;
//   - what lies on another mount inside;
//   - whether two files were exchanged, or one was renamed and back: it is told as two renames, the file as
//     modified, and what is at the other name as created.
package watched
