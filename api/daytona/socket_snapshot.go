// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"encoding/json"

	"sandpit.dev/access"
	"sandpit.dev/api/daytona/wire"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/events"
	"sandpit.dev/fault"
	"sandpit.dev/template"
)

func remember(states map[string]string, id, state string, over bool) {
	if states[id] = state; over || len(states) > maxStates {
		delete(states, id)
	}
}

// snapshotUpdated is the body of an event about a snapshot's state.
type snapshotUpdated struct {
	Snapshot wire.Snapshot `json:"snapshot"`
	OldState string        `json:"oldState"`
	NewState string        `json:"newState"`
}

// tellSnapshot sends the event of a template as it is now.
func (s *follower) tellSnapshot(ctx context.Context, caller access.Caller, e *events.Event, states map[string]string) error {
	if s.Templates == nil {
		return nil
	}
	t, err := s.Templates.Get(ctx, caller, e.Subject)
	var one wire.Snapshot
	switch {
	case err == nil && t.Spec.Origin == template.Sandbox: // its sandbox's events tell of it
		return nil
	case err == nil:
		one = s.snapshot(t)
	case !fault.Is(err, fault.NotFound):
		return err
	case e.Type != "template.deleted":
		return nil // the event of that comes
	default:
		var was v1.Template
		if err := json.Unmarshal(e.Object, &was); err != nil {
			return fault.Wrap(fault.Internal, err, "an event cannot be read")
		}
		if was.Origin == template.Sandbox {
			return nil
		}
		one = s.snapshot(&template.Template{ID: e.Subject, Project: e.Project, Name: was.Name, Status: template.Ready, CreatedAt: was.CreatedAt})
		one.State = wire.SnapshotRemoving
	}
	name, body := "snapshot.state.updated", any(snapshotUpdated{Snapshot: one, OldState: states[one.ID], NewState: one.State})
	switch e.Type {
	case "template.created":
		name, body = "snapshot.created", one
	case "template.deleted":
		name = "snapshot.removed"
	}
	remember(states, one.ID, one.State, one.State == wire.SnapshotRemoving)
	return s.send(ctx, packetEvent, []any{name, body})
}
