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
	wire.StateBuilding, wire.StatePulling, wire.StateBuildFailed,
	wire.StateArchived, wire.StateArchiving, wire.StatePausing, wire.StatePaused, wire.StateResuming,
}

func TestEveryStateIsOneThatClientsKnow(t *testing.T) {
	for _, s := range sandbox.States() {
		name := stateOf(&sandbox.Sandbox{State: s, Image: "x", ImageDigest: "x"})
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
	for name, s := range map[string]sandbox.Sandbox{
		wire.StateBuilding: {State: sandbox.Creating}, wire.StatePulling: {State: sandbox.Creating, Image: "x"},
		wire.StateBuildFailed: {State: sandbox.Failed}, wire.StateError: {State: sandbox.Failed, Image: "x"},
	} {
		if got := stateOf(&s); got != name || !slices.Equal(statesOf(name), []sandbox.State{s.State}) {
			t.Errorf("without an image a sandbox is %q, not %q, which selects %v", got, name, statesOf(name))
		}
	}
	if got := statesOf("nonsense"); got != nil {
		t.Errorf("nonsense selects %v", got)
	}
}
