// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/sandbox"
)

// Store keeps the records. It is safe for concurrent use.
type Store interface {
	View(ctx context.Context, fn func(Tx) error) error
	Update(ctx context.Context, fn func(Tx) error) error
	// Room returns nil, fault.Full while the disk of the records is nearly full, or
	// fault.Unavailable once they are found damaged: then new work is to be refused. Updates that
	// end or delete something still succeed, from a reserve.
	Room() error
	// Changed returns a channel that is closed at the next commit. It is a hint to read again.
	Changed() <-chan struct{}
	Close() error
}

// Tx is one transaction; it ends with the function that it was passed to.
type Tx interface {
	Sandboxes() Sandboxes
	Events() Events
	Tokens() Tokens
	Contexts() Contexts
	Snapshots() Snapshots
	Volumes() Volumes
	Runs() Runs
	Secrets() Secrets
	Requests() Requests
	NetworkRequests() NetworkRequests
	PreviewLinks() PreviewLinks
	Sessions() Sessions
	KnownImages() KnownImages
	Skills() Skills
	Templates() Templates
	Pools() Pools
	Settings() Settings
	Usage() Usage
	Projects() Projects
	Audit() Audit
	UnownedArchives() UnownedArchives
	Changes() Changes
	Webhooks() Webhooks
}

// Sandboxes are the records of sandboxes. Deleted ones are gone.
type Sandboxes interface {
	// Insert adds a record and sets its Revision to 1. A taken id, or a key
	// that its project has already, is fault.Exists.
	Insert(s *sandbox.Sandbox) error
	Get(id sandbox.ID) (*sandbox.Sandbox, error)
	// ByKey returns a sandbox by the caller's own name.
	ByKey(project, key string) (*sandbox.Sandbox, error)
	// List returns a page, and the cursor of the next one ("" at the end).
	List(q SandboxQuery) (page []*sandbox.Sandbox, next string, err error)
	// Count returns the number of sandboxes that match the query (without its page), by state.
	Count(q SandboxQuery) (map[sandbox.State]int, error)
	// Runtimes returns the runtime of every sandbox of every project.
	Runtimes() (map[sandbox.ID]string, error)
	// Update replaces the record if s.Revision is current, and increments it; ID, Project and
	// CreatedAt never change. If the transaction fails afterwards, the Revision of s is one too
	// high: read it again. A taken key is fault.Exists.
	Update(s *sandbox.Sandbox) error
	// Tally is Update of the figures only: LastActivity, ExecCount, ExecTime, BytesUploaded and
	// BytesDownloaded.
	Tally(s *sandbox.Sandbox) error
	// Touch sets the LastActivity of a sandbox that has an earlier one. It is no change of the record either: see Retain.
	Touch(id sandbox.ID, at time.Time) error
	// Retain sets the Retention of all sandboxes whose RetentionDefault is set. It is no change of their records, whose
	// Revision stays: whoever has one in memory changes that alike.
	Retain(d time.Duration) error
	// Delete removes the record, its contexts, its own secrets and the requests for its network. The records of
	// its snapshots stay, and its archive is one that nobody owns.
	Delete(id sandbox.ID) error
}

// Contexts are where cells of code run, by sandbox.
type Contexts interface {
	// Insert adds a context; a taken id is fault.Exists.
	Insert(c *sandbox.Context) error
	// Update replaces all but ID, Sandbox, Name and CreatedAt; fault.NotFound if the context does
	// not exist.
	Update(c *sandbox.Context) error
	// List returns a sandbox's contexts, oldest first.
	List(id sandbox.ID) ([]*sandbox.Context, error)
	// Delete removes a context of a sandbox; fault.NotFound if it does not exist.
	Delete(of sandbox.ID, id string) error
}

// SandboxQuery selects sandboxes. Zero fields select all.
type SandboxQuery struct {
	Project string
	States  []sandbox.State
	Image   string // exact
	// ImagePart selects by a part of the image's name, letter case ignored.
	ImagePart string
	// NamePart selects by a part of the key, or of the id of one without a key; letter case of ASCII ignored.
	NamePart string
	// ImageDigest selects by the image that they were made from, whatever its name was; exact.
	ImageDigest string
	Search      string            // a part of id, key or image, letter case ignored
	Metadata    map[string]string // all of these labels
	// DueBefore selects sandboxes for which a clock has expired, or may have, by then, as far as
	// their records show: a date that has come, a TTL since the last activity or with one that is
	// still to come, a retention since the stop or pause, AutoDelete of a stopped one, ArchiveAfter since
	// its stop. Idleness
	// is not checked.
	DueBefore time.Time
	SandboxSpans
	// Order: newest first, or the greatest first, by Sort, unless Oldest. A page begins behind the last row of the one
	// before, whatever was inserted or deleted since.
	Sort   SandboxSort
	Oldest bool
	Limit  int    // at most MaxPage, more is fault.Invalid; 0: DefaultPage
	Cursor string // of the page before; or:
	Offset int    // rows to pass over, for numbered pages; never with a Cursor
}

// Bounds of a page.
const (
	DefaultPage = 50
	MaxPage     = 500
)

// Snapshots are the records of kept disks. Those of a deleted sandbox stay.
type Snapshots interface {
	// Insert adds a record. A taken id, or a name that its sandbox has already,
	// is fault.Exists; the names of those without a sandbox are unique in their
	// project.
	Insert(s *sandbox.Snapshot) error
	Get(id sandbox.ID) (*sandbox.Snapshot, error)
	// ByName returns a snapshot of a sandbox by its name; it does not find those without a
	// sandbox.
	ByName(of sandbox.ID, name string) (*sandbox.Snapshot, error)
	// List returns a page, and the cursor of the next one ("" at the end).
	List(q SnapshotQuery) (page []*sandbox.Snapshot, next string, err error)
	// Count counts what the query (without its page) matches.
	Count(q SnapshotQuery) (int, error)
	// Update replaces Name, State, SizeBytes and Detail; fault.NotFound if the snapshot does not
	// exist, fault.Exists for a taken name.
	Update(s *sandbox.Snapshot) error
	// Move makes all snapshots of a sandbox those of another; fault.Exists where both have one of the same name.
	Move(from, to sandbox.ID) error
	Delete(id sandbox.ID) error // fault.NotFound if it does not exist
}

// SnapshotQuery selects snapshots. Zero fields select all.
type SnapshotQuery struct {
	Project string
	Sandbox sandbox.ID
	Auto    *bool
	Named   *bool
	States  []sandbox.SnapshotState
	// Order: newest first by CreatedAt, unless Oldest.
	Oldest bool
	Limit  int // as in SandboxQuery
	Cursor string
}

// Volumes are the records of volumes.
type Volumes interface {
	// Insert adds a record. A taken id, or a name that its project has already,
	// is fault.Exists.
	Insert(v *sandbox.Volume) error
	Get(id sandbox.ID) (*sandbox.Volume, error)
	ByName(project, name string) (*sandbox.Volume, error)
	// List returns the volumes of a project by name ("": of all projects).
	List(project string) ([]*sandbox.Volume, error)
	// Update replaces SizeMB, State and ExpiresAt; fault.NotFound if the volume does not exist.
	Update(v *sandbox.Volume) error
	// Expired returns the volumes that are ready, that no sandbox's record mounts and whose ExpiresAt is not after at, those
	// that expired first before the others, at most limit.
	Expired(at time.Time, limit int) ([]*sandbox.Volume, error)
	Delete(id sandbox.ID) error // fault.NotFound if it does not exist
	// Users returns the sandboxes whose records mount the volume, stopped ones too, each once, in
	// the order of their ids.
	Users(id sandbox.ID) ([]sandbox.ID, error)
}

// Secrets are the records of secrets with their values, which are sealed before they
// come here. They belong to a project, or to one sandbox of it.
type Secrets interface {
	// Put adds a record, or replaces the one with its Project, Sandbox and Name;
	// the CreatedAt of that stays.
	Put(s *SealedSecret) error
	// Get returns a secret of a project itself (of is empty), or of one of its sandboxes.
	Get(project string, of sandbox.ID, name string) (*SealedSecret, error)
	// List returns the secrets of a project itself (of is empty), or of one of its sandboxes, by
	// name.
	List(project string, of sandbox.ID) ([]*SealedSecret, error)
	// Attached returns the secrets of a project's sandboxes that are attached from one of its vault, by sandbox and name.
	Attached(project, vault string) ([]*SealedSecret, error)
	// All returns all secrets, those of projects themselves first.
	All() ([]*SealedSecret, error)
	// Delete removes a secret; fault.NotFound if it does not exist.
	Delete(project string, of sandbox.ID, name string) error
}

// SealedSecret is a secret with its value, which only the engine can open.
type SealedSecret struct {
	sandbox.Secret
	Sealed []byte
}

// Events are what happened, in the order of Seq.
type Events interface {
	// Append adds an event and sets its Seq. Another event of the sandbox with its Name that is not
	// done is fault.Exists.
	Append(e *sandbox.Event) error
	// Finish completes the row of a command that was appended with Done false, found by its Seq,
	// or if that is zero by Sandbox and ProcessID, which must match in any case. It writes the
	// result (Detail, ExitCode, Signal, Cause, Duration, the output's and the changes' fields,
	// Bytes, OK, and Signaled unless it is zero) and sets e.Seq and e.Done; what was written at the start stays. A row that is
	// done already is fault.Conflict: a result is written once.
	Finish(e *sandbox.Event) error
	// Signal notes in the row of a command without a result by whom it is sent a signal, and returns what it
	// said before. It reports whether there is such a row.
	Signal(id sandbox.ID, processID string, s sandbox.Signaled) (was sandbox.Signaled, found bool, err error)
	// Unsignal takes Signal back, also in a row that has its result since: what says s says was. One that says
	// something else, or is not there, is left alone.
	Unsignal(id sandbox.ID, processID string, s, was sandbox.Signaled) error
	List(q EventQuery) (page []*sandbox.Event, next string, err error)
	// Unfinished returns the rows with a ProcessID and without Done: commands without a result,
	// oldest first; of all sandboxes for an empty id.
	Unfinished(id sandbox.ID) ([]*sandbox.Event, error)
	// Prune examines the oldest events that q selects and deletes those that are past its bounds
	// and no longer needed: never one without a result, one of a command of a run that has not
	// ended, or the newest of all, so that no Seq is used twice. It returns how many it deleted,
	// and the Seq of the last one that it examined, which is the next q.After; zero: there are no
	// more.
	Prune(q EventPrune) (deleted int, last int64, err error)
	// Surplus returns, for each project, the Seq of the newest event that is too many if only the
	// newest keep of the project are kept. Projects with fewer are not in it.
	Surplus(keep int) (map[string]int64, error)
}

// EventPrune selects events that may be deleted, by age or by number.
type EventPrune struct {
	// Before selects events of any project with an earlier At. The search ends where none of
	// q.Limit events is earlier.
	Before time.Time
	// Upto, if it is not zero, selects events of Project whose Seq is not greater; Before is
	// ignored then.
	Project string
	Upto    int64
	// Recent protects the events by which the engine knows its own instances, snapshots and
	// volumes (see [sandbox.OwningEvents]) from this time on: they are not deleted for their
	// number.
	Recent time.Time
	// Spare reports whether the event of a sandbox that was made ahead is still needed; nil: none
	// is.
	Spare func(sandbox.ID) bool
	After int64
	Limit int // looked at; 1 to MaxPage
}

// EventQuery selects events. Zero fields select all.
type EventQuery struct {
	Project   string
	Sandbox   sandbox.ID
	ProcessID string // quick together with Sandbox; alone it reads every event
	Name      string // of processes; quick together with Sandbox and Named
	Named     bool   // only those of processes with a name or a label
	Types     []sandbox.EventType
	Since     time.Time
	Until     time.Time
	After     int64 // only those with a greater Seq; implies Oldest
	Oldest    bool  // else newest first
	Limit     int   // as in SandboxQuery
	Cursor    string
}

// Tokens are the bearer tokens, by hash; the secret itself is never kept.
type Tokens interface {
	Insert(t *access.Token) error // fault.Exists when the project has the name
	// ByHash finds the token of a secret. Of an old secret, which a rotation replaced, until is when it
	// stops being valid, which may have passed; of the present one it is zero.
	ByHash(hash []byte) (t *access.Token, until time.Time, err error)
	List(project string) ([]*access.Token, error)
	// Delete removes a token by id or by name within the project ("": any project; then a name
	// that several projects use is fault.Invalid). An id takes precedence over a name.
	Delete(project, idOrName string) error
	// Rotate gives a token, named as for Delete, another secret, at now. The secrets before it are
	// valid until then, or until they were to end anyway; where until is not after now, not at all. A
	// token that is left more than [access.MaxOldSecrets] is fault.Conflict.
	Rotate(project, idOrName string, hash []byte, now, until time.Time) (*access.Token, error)
	// Touch records the last use; an earlier time than the recorded one changes nothing.
	Touch(id string, at time.Time) error
}
