// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/runs"
)

func TestRunsThatKeepArtifactsAreListedApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := open(t, dir, withArtifacts(dir))
	h.create(engine.CreateRequest{Key: "box"})
	with := h.run(runs.Request{Sandbox: "box", Commands: shells("echo x > ../artifacts/x")})
	canceled, err := h.runner.Start(t.Context(), alice, runs.Request{Sandbox: "box", Commands: shells("sleep 600")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.runner.Cancel(t.Context(), alice, canceled.ID); err != nil {
		t.Fatal(err)
	}
	all, err := h.runner.List(t.Context(), alice, runs.ListRequest{Limit: 10})
	if err != nil || len(all.Items) != 2 {
		t.Errorf("all: %+v, %v", all, err)
	}
	kept, err := h.runner.List(t.Context(), alice, runs.ListRequest{Kept: true, Limit: 10})
	if err != nil || len(kept.Items) != 1 || kept.Items[0].ID != with.ID || len(kept.Items[0].Artifacts) != 1 {
		t.Errorf("those that keep artifacts: %+v, %v", kept, err)
	}
}
