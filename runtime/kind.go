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

	// Variables returns the fields of the section that the environment sets: pointers to a string
	// or an int, by the names of the variables.
	Variables() map[string]any

	// Check checks the section. The error is fault.Invalid and names the field.
	Check() error

	// Open opens the driver. It makes the directory if it needs one.
	Open(ctx context.Context, o OpenOptions) (Driver, error)

	// Inspect looks for what is wrong with the kind's part of a data directory that no server has
	// open, and mends it if mend is set. It does not touch a disk, nor a sandbox that is up
	// unless undue returns a reason why it should not be. A missing directory is not a finding.
	Inspect(ctx context.Context, p Place, undue func(sandbox.ID) string, mend bool) ([]Finding, error)
}

// Optional is implemented by kinds that a server has only where its configuration asks for them.
type Optional interface {
	// Wanted reports whether the section asks for the kind. Without, it is checked and nothing else.
	Wanted() bool

	// Want has the section ask for the kind, with what it leaves open as it usually is.
	Want()
}

// Place is where a kind keeps its files.
type Place struct {
	Dir string // in the data directory, named after the kind; it may be missing
	// Namespace names what is outside of Dir. It belongs to this directory alone and never
	// changes: 12 characters of a-z and 0-9. "": the kind derives one from the path of Dir.
	Namespace string
}

// OpenOptions are the options of [Kind].Open.
type OpenOptions struct {
	Place
	Installation Installation
	Agent        []byte       // the agent's program, a static binary
	Logger       *slog.Logger // what goes wrong behind a caller's back; nil drops it
	Publisher    Publisher    // of images, for kinds whose hosts pull them; nil: there is none
	// Patient: the server has other runtimes. A kind of which something elsewhere is a part, an Engine
	// say, opens without that, too, and refuses what needs it until it comes.
	Patient bool
}

// Publisher puts images into registries.
type Publisher interface {
	// Publish puts what is below a directory into a registry, as an image that the reference names, with labels. What is there already is not
	// sent again. It returns the digest of its manifest. The directory does not change meanwhile.
	Publish(ctx context.Context, dir, reference string, labels map[string]string) (digest string, err error)
}

// Installation identifies the owner of the disks, so that a store of disks that is missing or
// another's is not opened, and no new one is made in its place.
type Installation struct {
	// ID is kept by the store, too. "": it is not checked.
	ID string
	// Was is an earlier id of the installation: a store that has it is its own, and gets ID.
	Was string
	// Known: the store had the id before. A store without it is another one.
	Known bool
	// Take makes any store that exists the installation's, and a new one if none exists.
	Take bool
}

// Finding is something that an earlier server left behind, or that is broken.
type Finding struct {
	Name string // what it is about: "sandbox ID", "store"
	What string
	Done string // how it was mended; empty: it was not
	Err  error  // why not, if that was tried
}

// Directory is a directory of a kind.
type Directory struct {
	Name string // in the data directory: "native/instances"
	Path string // where it is, which may be elsewhere
}

// HostKind is implemented by kinds whose sandboxes are processes of this host, on disks in their
// directory, so that they can be found without a driver. Its drivers are [HostDriver]s.
type HostKind interface {
	Kind

	// Store returns where the store of disks is in a directory of the kind's; see package layer.
	Store(dir string) string

	// Private lists the directories, there or not, that the server's user alone may write to.
	Private(p Place) []Directory

	// NamespaceOf returns the namespace that a directory was last used with, as far as the
	// directory records it.
	NamespaceOf(dir string) (string, error)

	// Up lists the sandboxes that run.
	Up(p Place) ([]sandbox.ID, error)

	// Groups lists the sandboxes that have something on the host outside of any directory, as
	// those that run do.
	Groups(namespace string) ([]sandbox.ID, error)

	// Bare reports whether a directory records no sandbox that runs, or ran when its server
	// ended.
	Bare(p Place) (bool, error)

	// InspectAbandoned looks for what servers that are gone left on the host without processes,
	// and removes it if mend is set. gone reports whether the directory of a namespace is
	// certainly gone, or does not use it; release, if it is not nil, is called once it is
	// removed.
	InspectAbandoned(ctx context.Context, gone func(namespace, dir string) (release func(), ok bool), mend bool) ([]Finding, error)

	// OpenDisks opens or makes the store that a driver of dir would use, and sets the id of its
	// installation. Like the driver, it has one owner at a time.
	OpenDisks(ctx context.Context, dir, id string, log *slog.Logger) (Disks, error)
}

// HostDriver is implemented by the drivers of a [HostKind].
type HostDriver interface {
	Driver

	// Identified reports whether the store of disks has the installation's id.
	Identified() bool

	// Pending reports whether Persist has something to write.
	Pending() bool

	// Persist writes everything made so far to the disk.
	Persist() error

	// MarkRecorded reports that the record of everything made before at is on the disk.
	MarkRecorded(at time.Time) error
}

// Disks is a store of disks without a driver, for those that come out of a backup. Archives are
// hostile: nothing in them leads anywhere else, and at most maxBytes are kept of each. Every
// import is all or nothing.
type Disks interface {
	// ImportSandbox makes the disk of a sandbox from an archive of [Archiver].ExportDisk. diskMB
	// is its limit from then on; zero: none.
	ImportSandbox(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64, diskMB int) error
	ImportSnapshot(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64) error
	ImportVolume(ctx context.Context, id sandbox.ID, r io.Reader, maxBytes int64, sizeMB int) error

	// Close writes everything to the disk and closes the store.
	Close(ctx context.Context) error
}
