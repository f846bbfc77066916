// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/events"
)

// Event is a change of a record as JSON.
func Event(e *events.Event) []byte {
	b, err := json.Marshal(v1.ProjectEvent{
		ID: e.ID, Type: e.Type, At: e.At.UTC(), Project: TextOrNull(e.Project), Actor: e.Actor, Via: e.Via, Subject: e.Subject, Object: e.Object,
	})
	if err != nil {
		return []byte("null") // its object is no JSON: no server of ours has written it
	}
	return b
}
