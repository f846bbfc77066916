// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"time"
)

// Names of the events of GET /events that are no change of a record.
const (
	EventsBegun = "begun" // EventsPosition: what is committed from now on is told
	EventsReset = "reset" // EventsPosition: events are missing before it
	EventsEnd   = "end"   // EventsPosition: with follow=false, there are no more
)

// ProjectEvent is one change of a record of a project: the type is the event's name, too.
type ProjectEvent struct {
	ID      string          `json:"id" jsonschema:"of the event; who was away goes on behind the one that it saw last, with Last-Event-ID"`
	Type    string          `json:"type" jsonschema:"sandbox.started, snapshot.ready, …"`
	At      time.Time       `json:"at"`
	Project *string         `json:"project" jsonschema:"null: it is the server's, and all projects see it"`
	Actor   string          `json:"actor,omitempty" jsonschema:"who: the token's name, or system for a clock or a repair"`
	Via     string          `json:"via,omitempty" jsonschema:"rest, mcp, console or system"`
	Subject string          `json:"object_id" jsonschema:"the id of what changed"`
	Object  json.RawMessage `json:"object" jsonschema:"the record after the change, of a deleted one as it was before: Sandbox, Snapshot, Volume or Template, by the first word of type; without values of variables, output of commands and measured figures"`
}

// Sandbox returns the object of an event sandbox.*; nil: it is another's.
func (e *ProjectEvent) Sandbox() *Sandbox { return object[Sandbox](e, "sandbox.") }

// Snapshot returns the object of an event snapshot.*; nil: it is another's.
func (e *ProjectEvent) Snapshot() *Snapshot { return object[Snapshot](e, "snapshot.") }

// Volume returns the object of an event volume.*; nil: it is another's.
func (e *ProjectEvent) Volume() *Volume { return object[Volume](e, "volume.") }

// Template returns the object of an event template.*; nil: it is another's.
func (e *ProjectEvent) Template() *Template { return object[Template](e, "template.") }

// Image returns the object of an event image.*; nil: it is another's.
func (e *ProjectEvent) Image() *Image { return object[Image](e, "image.") }

func object[T any](e *ProjectEvent, prefix string) *T {
	if len(e.Type) < len(prefix) || e.Type[:len(prefix)] != prefix {
		return nil
	}
	out := new(T)
	if json.Unmarshal(e.Object, out) != nil {
		return nil
	}
	return out
}

// EventsPosition says where a stream of events begins, or goes on.
type EventsPosition struct {
	ID     string `json:"id" jsonschema:"go on behind it with Last-Event-ID"`
	Reason string `json:"reason,omitempty" jsonschema:"of a reset: unknown_id, for the server does not keep the event of Last-Event-ID; or too_slow, for it does not keep the next one any more"`
	Detail string `json:"detail,omitempty" jsonschema:"the same for people, with what to do"`
}
