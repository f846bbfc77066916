// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"time"

	"sandpit.dev/internal/excerpt"
)

// EventType names what happened: a noun, a dot, and a past participle.
type EventType string

const (
	EventCreated    EventType = "sandbox.created"
	EventFailed     EventType = "sandbox.failed" // a create, start, stop, rollback or snapshot did not work; Detail says why
	EventStarted    EventType = "sandbox.started"
	EventStopped    EventType = "sandbox.stopped"
	EventPaused     EventType = "sandbox.paused"
	EventResumed    EventType = "sandbox.resumed"
	EventRestored   EventType = "sandbox.restored"   // its disk was exchanged: rolled back, or made fresh
	EventPrepared   EventType = "sandbox.prepared"   // made ahead, for the next create
	EventArchived   EventType = "sandbox.archived"   // its disk was packed, and left the fast store
	EventUnarchived EventType = "sandbox.unarchived" // its disk is there again, and it is stopped
	EventPromoted   EventType = "sandbox.promoted"   // it took the place of the sandbox that it was forked from
	EventUpdated    EventType = "sandbox.updated"
	EventDeleted    EventType = "sandbox.deleted"
	EventExec       EventType = "exec"
	EventTerminal   EventType = "terminal"
	EventCode       EventType = "code"         // a cell; ProcessID is the cell's id
	EventContext    EventType = "code.context" // a kernel; it ends with its process
	EventUpload     EventType = "file.upload"
	EventDownload   EventType = "file.download"
	EventFileMkdir  EventType = "file.mkdir"
	EventFileMove   EventType = "file.move"
	EventFileDelete EventType = "file.delete"
	EventFileChange EventType = "file.change" // of mode, owner, group or attributes

	EventLanguageServer EventType = "language.server" // one ran, see package languages; it ends with its process

	EventFileReplace EventType = "file.replace" // of text in files: Path is the first of them

	EventSnapshot           EventType = "snapshot.created"    // ProcessID is the snapshot's id; Detail has it, and its name. Sandbox is empty if it was imported
	EventSnapshotDeleted    EventType = "snapshot.deleted"    // likewise
	EventSnapshotArchived   EventType = "snapshot.archived"   // likewise; its disk was packed, and left the fast store
	EventSnapshotUnarchived EventType = "snapshot.unarchived" // likewise; it is there again
	EventVolume             EventType = "volume.created"      // ProcessID is the volume's id; Sandbox is empty
	EventVolumeUpdated      EventType = "volume.updated"      // its lifetime is another
	EventVolumeExpired      EventType = "volume.expired"      // its lifetime has passed, and no sandbox mounts it; volume.deleted follows
	EventVolumeDeleted      EventType = "volume.deleted"

	EventNetworkRefused EventType = "network.refused" // the first time that one thing was; Detail says what and why

	EventNetworkRequested EventType = "network.requested" // a tool asked for hosts; Detail has the request's id, the hosts and its words
	EventNetworkGranted   EventType = "network.granted"   // ProcessID is the request's id, as of the next; sandbox.updated tells what changed
	EventNetworkDenied    EventType = "network.denied"

	EventSecret        EventType = "secret.set"     // Detail has its name and hosts; Sandbox is empty for a project's
	EventSecretDeleted EventType = "secret.deleted" // likewise
	EventSecretUsed    EventType = "secret.used"    // the first request to a host that it was put into; Detail has its name and the host

	EventSkill          EventType = "skill.created"   // ProcessID is the skill's id; Sandbox is empty, as of the next two
	EventSkillReplaced  EventType = "skill.replaced"  // by another package
	EventSkillDeleted   EventType = "skill.deleted"   // from the project; where it is installed it stays
	EventSkillInstalled EventType = "skill.installed" // Path is the directory; Detail has its name

	EventTemplate        EventType = "template.created" // ProcessID is the template's id; Sandbox is empty, as of the next
	EventTemplateUpdated EventType = "template.updated" // likewise; it is made inactive, or active again
	EventTemplateDeleted EventType = "template.deleted" // one version; sandboxes that were made of it stay
	EventReady           EventType = "sandbox.ready"    // what its start command began is ready, or OK is false and Detail says why not

	EventToken           EventType = "token.created"    // a token for it alone was made; Detail has its name and scopes
	EventTokensEnded     EventType = "tokens.ended"     // all of them
	EventFileKey         EventType = "file-key.changed" // the key that signs addresses of its files: those that there were are good no more
	EventPreview         EventType = "preview.created"  // a link to a port was made; ProcessID is the link's id
	EventPreviewsChanged EventType = "previews.changed" // who may see its ports, or the host that its programs see
	EventPreviewRevoked  EventType = "preview.revoked"  // one that was on record is good no more
	EventPreviewOpened   EventType = "preview.opened"   // it was followed for the first time
)

// OwningEvents returns the types by which the engine knows that an instance, a snapshot or a
// volume without a record is its own to remove.
func OwningEvents() []EventType {
	return []EventType{
		EventCreated, EventDeleted, EventPrepared, EventSnapshot, EventSnapshotDeleted, EventSnapshotArchived, EventSnapshotUnarchived, EventVolume, EventVolumeDeleted,
	}
}

// Event is one row of what happened to a sandbox. A command's row is written when it is begun
// (Done false) and completed when it ends; all others are written once, in one transaction with
// the change that they record.
type Event struct {
	Seq     int64 // grows by one per event of the whole store
	Sandbox ID
	Project string
	Type    EventType
	At      time.Time
	Actor   string // who: the token's name, or "system" for a clock or a repair
	Via     string // through what: "rest", "mcp", "system"
	Detail  string // one line for people; never a secret

	// Of a command, of a terminal, and of code.
	ProcessID       string
	Language        string // of code
	ContextID       string // of code; empty for a cell that had a kernel of its own
	Name            string // which no other process of the sandbox has that runs
	Labels          map[string]string
	Command         string // at most MaxEventCommand bytes of it
	User            string
	Cwd             string
	Done            bool
	ExitCode        int
	Signal          string
	Signaled        Signaled
	Cause           Cause
	Duration        time.Duration
	StdoutBytes     int64
	StderrBytes     int64
	StdoutTruncated bool
	StderrTruncated bool
	Stdout, Stderr  *excerpt.Excerpt // for the audit log alone; no list of events has them
	Changes         []FileChange
	ChangesTotal    int // how many there were, of which Changes may hold fewer

	// Of a file transfer or a change made through the file API.
	Path  string
	To    string // of a move
	Bytes int64
	OK    bool // whether it worked; Detail says why not
}

// Bounds of what one event keeps.
const (
	MaxEventCommand = 4096
	MaxEventDetail  = 1024
	MaxEventChanges = 200
)

// FileChange is one path that a command changed.
type FileChange struct {
	Path    string `json:"path"`              // relative to the workspace; valid UTF-8
	Escaped bool   `json:"escaped,omitempty"` // Path is not the name itself, see [FileEvent.Escaped]
	Action  string `json:"action"`            // created, modified, deleted
	Size    int64  `json:"size_bytes"`        // in bytes after the command; zero when deleted
}

// Changes is the net effect of what happened to a directory.
type Changes struct {
	Files    []FileChange // sorted by path
	Total    int          // how many there were; Files may hold fewer
	Complete bool         // false where the host had to drop some; Total is then the least
}
