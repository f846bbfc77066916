// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

func TestRunsThatKeepArtifactsAreListedApart(t *testing.T) {
	dir := t.TempDir()
	h := open(t, dir, withArtifacts(dir))
	h.create(engine.CreateRequest{Key: "box"})
	with := h.runs(engine.RunRequest{Sandbox: "box", Commands: shells("echo x > ../artifacts/x")})
	canceled, err := h.engine.StartRun(t.Context(), alice, engine.RunRequest{Sandbox: "box", Commands: shells("sleep 600")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.engine.CancelRun(t.Context(), alice, canceled.ID); err != nil {
		t.Fatal(err)
	}
	all, err := h.engine.Runs(t.Context(), alice, engine.RunsRequest{Limit: 10})
	if err != nil || len(all.Items) != 2 {
		t.Errorf("all: %+v, %v", all, err)
	}
	kept, err := h.engine.Runs(t.Context(), alice, engine.RunsRequest{Kept: true, Limit: 10})
	if err != nil || len(kept.Items) != 1 || kept.Items[0].ID != with.ID || len(kept.Items[0].Artifacts) != 1 {
		t.Errorf("those that keep artifacts: %+v, %v", kept, err)
	}
}

func TestWhatIsInForceIsWhatTheServerAllows(t *testing.T) {
	open := sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}
	for most, want := range map[sandbox.NetworkMode]sandbox.NetworkMode{
		"": sandbox.NetworkOpen, sandbox.NetworkOpen: sandbox.NetworkOpen, sandbox.NetworkRestricted: sandbox.NetworkRestricted, sandbox.NetworkOff: sandbox.NetworkOff,
	} {
		h := openNetwork(t, most)
		if got := h.engine.InForce(open); got.Mode != want {
			t.Errorf("with %q as the most: %s, want %s", most, got.Mode, want)
		}
	}
}

func openNetwork(t *testing.T, most sandbox.NetworkMode) *house {
	t.Helper()
	return open(t, t.TempDir(), func(o *engine.Options) { o.Network.Most = most })
}
