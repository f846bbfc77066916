// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"io"
	"log/slog"
	"time"

	"sandpit.dev/sandbox"
)

// Kind is a kind of runtime that a server can have. Its value is its section of the server's
// configuration; a pointer to it is the Kind.
type Kind interface {
	// Name returns the runtime's name in records, requests and the configuration. The kind's
	// directory in the data directory has the same.
	Name() string

	// Variables returns what the environment sets in the section: pointers to a string or an
	// int, by the names of the variables.
	Variables() map[string]any

	// Check checks the section. The error is fault.Invalid and names the field.
	Check() error

	// Open opens the driver. It makes the directory where it needs one.
	Open(ctx context.Context, o OpenOptions) (Driver, error)

	// Inspect looks for what is wrong with the kind's part of a data directory that no server
	// has open, and mends it if it is to. Sandboxes that are up are not touched, but those of
	// which undue returns a reason why they should not be; no disk is. A directory that is
	// not there is nothing wrong.
	Inspect(ctx context.Context, p Place, undue func(sandbox.ID) string, mend bool) ([]Finding, error)
}

// Place is where a kind has what is its own.
type Place struct {
	Dir string // in the data directory, named after the kind; it may be missing
	// Namespace names what is outside of Dir, of this directory alone and the same for ever:
	// 12 characters of a-z and 0-9. "": the kind makes one of the path of Dir.
	Namespace string
}

// OpenOptions are those of [Kind].Open.
type OpenOptions struct {
	Place
	Installation Installation
	Agent        []byte       // the agent's program, a static binary
	Logger       *slog.Logger // what goes wrong behind a caller's back; nil drops it
}

// Installation says whose the disks are, so that a store of them that is missing or
// another's is not opened, nor a new one made in its place.
type Installation struct {
	// ID is kept by the store, too. "": it is not looked at.
	ID string
	// Was is an id that the installation had before: a store with it is its own, and gets ID.
	Was string
	// Known: the store had the id before. One without it is another store.
	Known bool
	// Take makes whatever store is there the installation's, and a new one where none is.
	Take bool
}

// Finding is something that an earlier server left behind, or that somebody broke.
type Finding struct {
	Name string // what it is about: "sandbox ID", "store"
	What string
	Done string // how it was mended; empty: it was not
	Err  error  // why not, if that was tried
}

// Directory is a directory of a kind's.
type Directory struct {
	Name string // in the data directory: "native/instances"
	Path string // where it is, which may be elsewhere
}

// HostKind is what kinds are whose sandboxes are processes of this host, on disks in their
// directory: what of them is there can be told without a driver. Its drivers are [HostDriver]s.
type HostKind interface {
	Kind

	// Store returns where the store of disks is in a directory of the kind's; see package layer.
	Store(dir string) string

	// Private lists the directories, there or not, that the server's user alone may write to.
	Private(p Place) []Directory

	// NamespaceOf returns the namespace that a directory was used with last, as far as the
	// directory says.
	NamespaceOf(dir string) (string, error)

	// Up lists the sandboxes that run.
	Up(p Place) ([]sandbox.ID, error)

	// Groups lists the sandboxes that have something on the host outside of any directory,
	// which those that run have.
	Groups(namespace string) ([]sandbox.ID, error)

	// Bare reports whether a directory says of no sandbox that it runs, or did when its
	// server ended.
	Bare(p Place) (bool, error)

	// InspectAbandoned looks for what is left on the host, without processes, of servers that
	// are gone, and removes it if it is to. gone reports whether the directory of a namespace is gone for
	// certain, or has no use for it; release, if it is not nil, is called once it is removed.
	InspectAbandoned(ctx context.Context, gone func(namespace, dir string) (release func(), ok bool), mend bool) ([]Finding, error)

	// OpenDisks opens or makes the store that a driver of dir would open or make, and gives it
	// the id of an installation. It has one owner at a time, as the driver has.
	OpenDisks(ctx context.Context, dir, id string, log *slog.Logger) (Disks, error)
}

// HostDriver is what drivers of a [HostKind] are.
type HostDriver interface {
	Driver

	// Identified reports whether the store of disks has the installation's id.
	Identified() bool

	// Persist brings what was made so far to the disk.
	Persist() error

	// MarkRecorded is told that the record of everything made before at is on the disk.
	MarkRecorded(at time.Time) error
}

// Disks is a store of disks without a driver: for those that come out of a backup. Archives
// are hostile: nothing in them leads anywhere else, and at most maxBytes are kept of each.
// All imports are all or nothing.
type Disks interface {
	// ImportSandbox makes the disk of a sandbox of an archive of [Archiver].ExportDisk. diskMB
	// is its limit from then on; zero: none.
	ImportSandbox(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64, diskMB int) error
	ImportSnapshot(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64) error
	ImportVolume(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64, sizeMB int) error

	// Close brings all to the disk and closes the store.
	Close(ctx context.Context) error
}
