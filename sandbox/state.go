// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "slices"

// State is the state of a sandbox. States that end in -ing are intents: they are committed before
// the work begins, so that a crash leaves a record of the intent, and the next start finishes or
// undoes it.
type State string

const (
	// Creating is an intent; a crash undoes it, and nothing of the sandbox remains. While its image is made the record has no digest,
	// and where that fails, also by a crash, it is Failed: its caller was answered.
	Creating  State = "creating"
	Running   State = "running"
	Pausing   State = "pausing"   // intent; a crash undoes it: back to running
	Paused    State = "paused"    // its processes are frozen and keep their memory; its meter stands
	Resuming  State = "resuming"  // intent; a crash finishes it
	Stopping  State = "stopping"  // intent; a crash finishes it
	Stopped   State = "stopped"   // no processes; everything on disk is kept
	Archiving State = "archiving" // intent: its disk is being packed; a crash undoes it, or finishes it where the packed copy is whole
	Archived  State = "archived"  // no processes; its disk is packed elsewhere, see Sandbox.Archive
	// Unarchiving is an intent: its disk is being unpacked; a crash undoes it, back to archived.
	Unarchiving State = "unarchiving"
	Starting    State = "starting"  // intent; a crash undoes it: back to stopped
	Restoring   State = "restoring" // intent: its disk is being exchanged; a crash finishes it, and it is stopped then
	Failed      State = "failed"    // what it needs is gone from the host; StopDetail says what
	Deleting    State = "deleting"  // intent; a crash finishes it
	Deleted     State = "deleted"   // the last state; seen only in events, the record is gone
)

// transitions is the state table as data: from each state, where it may go. Of
// the arrows out of a state that is up, Stopped is that its processes went away
// by themselves.
var transitions = map[State][]State{
	Creating:    {Running, Failed, Deleting, Deleted},
	Running:     {Pausing, Stopping, Stopped, Restoring, Failed, Deleting},
	Pausing:     {Paused, Running, Stopped, Failed, Deleting},
	Paused:      {Resuming, Stopping, Stopped, Restoring, Failed, Deleting},
	Resuming:    {Running, Paused, Stopped, Failed, Deleting},
	Stopping:    {Stopped, Deleting},
	Stopped:     {Archiving, Starting, Restoring, Failed, Deleting},
	Archiving:   {Archived, Stopped, Deleting},
	Archived:    {Unarchiving, Deleting},
	Unarchiving: {Stopped, Archived, Deleting},
	Starting:    {Running, Stopped, Failed, Deleting},
	Restoring:   {Running, Stopped, Failed, Deleting},
	Failed:      {Stopped, Restoring, Deleting},
	Deleting:    {Deleted},
	Deleted:     {},
}

// States lists every state in the order of a life.
func States() []State {
	return []State{
		Creating, Running, Pausing, Paused, Resuming, Stopping, Stopped,
		Archiving, Archived, Unarchiving, Starting, Restoring, Failed, Deleting, Deleted,
	}
}

// CanBecome reports whether the table has an arrow from s to t.
func (s State) CanBecome(t State) bool { return slices.Contains(transitions[s], t) }

// Next lists where s may go, in the table's order.
func (s State) Next() []State { return slices.Clone(transitions[s]) }

// Intent reports whether s is work that has begun and has no outcome yet.
func (s State) Intent() bool {
	switch s {
	case Creating, Pausing, Resuming, Stopping, Archiving, Unarchiving, Starting, Restoring, Deleting:
		return true
	}
	return false
}

// Valid reports whether s is a state at all.
func (s State) Valid() bool { _, ok := transitions[s]; return ok }
