// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "slices"

// State is where a sandbox stands. States that end in -ing are intents: they
// are committed before the work is begun, so that a crash leaves a record of
// what was meant, and the next start finishes or undoes it.
type State string

const (
	Creating State = "creating" // intent; a crash undoes it: nothing of the sandbox remains
	Running  State = "running"
	Stopping State = "stopping" // intent; a crash finishes it
	Stopped  State = "stopped"  // no processes; everything on disk is kept
	Starting State = "starting" // intent; a crash undoes it: back to stopped
	Deleting State = "deleting" // intent; a crash finishes it
	Deleted  State = "deleted"  // the last state; seen only in events, the record is gone
)

// transitions is the state table as data: from each state, where it may go.
var transitions = map[State][]State{
	Creating: {Running, Deleting, Deleted},
	Running:  {Stopping, Stopped, Deleting},
	Stopping: {Stopped, Deleting},
	Stopped:  {Starting, Deleting},
	Starting: {Running, Stopped, Deleting},
	Deleting: {Deleted},
	Deleted:  {},
}

// States lists every state in the order of a life.
func States() []State {
	return []State{Creating, Running, Stopping, Stopped, Starting, Deleting, Deleted}
}

// CanBecome tells whether the table has an arrow from s to t.
func (s State) CanBecome(t State) bool { return slices.Contains(transitions[s], t) }

// Intent tells whether s is work that was begun and has no outcome yet.
func (s State) Intent() bool {
	return s == Creating || s == Stopping || s == Starting || s == Deleting
}

// Valid tells whether s is a state at all.
func (s State) Valid() bool { _, ok := transitions[s]; return ok }
