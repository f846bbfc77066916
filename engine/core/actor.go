// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Actor is whom an event names.
type Actor struct{ Name, Via string }

// System is the engine itself: a clock, a watcher, a repair.
var System = Actor{sandbox.System, sandbox.System}

// ActorOf returns the actor that a caller is.
func ActorOf(c access.Caller) Actor {
	a := Actor{c.Actor, c.Via}
	if a.Name == "" {
		a.Name = "unknown"
	}
	return a
}

// Event returns an event that is complete, and went well.
func (a Actor) Event(t sandbox.EventType, s *sandbox.Sandbox, at time.Time) *sandbox.Event {
	return &sandbox.Event{
		Sandbox: s.ID, Project: s.Project, Type: t, At: at, Actor: a.Name, Via: a.Via, Done: true, OK: true,
	}
}

// Started returns the event of a start, with what the driver has to say of it.
func (a Actor) Started(s *sandbox.Sandbox, at time.Time, i runtime.Instance) *sandbox.Event {
	ev := a.Event(sandbox.EventStarted, s, at)
	if n, ok := i.(runtime.Noter); ok {
		ev.Detail = sandbox.Clip(n.Note(), sandbox.MaxEventDetail)
	}
	return ev
}

// Did says what the actor did, as the detail of a record.
func (a Actor) Did(what string) string {
	return fmt.Sprintf("%s by %s through %s", what, a.Name, a.Via)
}

// Reason returns the text of an error for an event: what the caller may see of it.
func Reason(err error) string { return sandbox.Clip(fault.As(err).Message, sandbox.MaxEventDetail) }
