// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"slices"
	"testing"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/sandbox"
)

// known are the states that clients know.
var known = []string{
	wire.StateCreating, wire.StateRestoring, wire.StateDestroyed, wire.StateDestroying, wire.StateStarted, wire.StateStopped, wire.StateStarting, wire.StateStopping, wire.StateError,
	wire.StateArchived, wire.StateArchiving, wire.StatePausing, wire.StatePaused, wire.StateResuming,
}

func TestEveryStateIsOneThatClientsKnow(t *testing.T) {
	for _, s := range sandbox.States() {
		name := stateOf(&sandbox.Sandbox{State: s})
		if !slices.Contains(known, name) {
			t.Errorf("%s is %q, which clients do not know", s, name)
		}
		if name == wire.StateError && s != sandbox.Failed {
			t.Errorf("%s is told as an error", s)
		}
		if !slices.Contains(statesOf(name), s) {
			t.Errorf("%s is not among what %q selects", s, name)
		}
		if d := desired(&sandbox.Sandbox{State: s}); !slices.Contains([]string{wire.StateDestroyed, wire.StateStarted, wire.StateStopped, wire.StateArchived, wire.StatePaused}, d) {
			t.Errorf("%s is on its way to %q, which clients do not know", s, d)
		}
	}
	if got := statesOf("nonsense"); got != nil {
		t.Errorf("nonsense selects %v", got)
	}
}
