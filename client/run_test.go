// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"encoding/json"
	"io"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

func TestRuns(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	shell := func(text string) v1.RunCommandSpec { return v1.RunCommandSpec{Shell: &text} }
	r, err := h.StartRun(ctx, "box", v1.StartRun{Commands: []v1.RunCommandSpec{shell("echo one; sleep 0.2; echo two"), shell("exit 3")}})
	must(t, err)
	out, names := "", []string{}
	last := int64(0)
	for ev, err := range h.FollowRun(ctx, r.RunID, 0) {
		must(t, err)
		if ev.ID != last+1 {
			t.Errorf("after %d came %d", last, ev.ID)
		}
		last = ev.ID
		names = append(names, ev.Name)
		if ev.Name == v1.RunEventCommandStdout {
			var d v1.CommandOutput
			must(t, json.Unmarshal(ev.Data, &d))
			out += d.Chunk
		}
	}
	if out != "one\ntwo\n" || names[0] != v1.RunEventStarted || names[len(names)-1] != v1.RunEventFailed {
		t.Errorf("got %q, %v", out, names)
	}
	for ev, err := range h.FollowRun(ctx, r.RunID, last-1) {
		must(t, err)
		if ev.ID != last {
			t.Errorf("behind the last but one came %d", ev.ID)
		}
	}
	for ev, err := range h.FollowRun(ctx, r.RunID, last) {
		t.Errorf("behind the last came %+v, %v", ev, err)
	}
	for _, err := range h.FollowRun(ctx, "nonsense", 0) {
		wantCode(t, err, fault.NotFound)
	}
	r, err = h.Client.Run(ctx, r.RunID)
	must(t, err)
	if r.State != "failed" || r.Commands[0].Stdout != out || *r.Commands[1].ExitCode != 3 {
		t.Errorf("got %+v", r)
	}
	second, err := h.StartRun(ctx, "box", v1.StartRun{Commands: []v1.RunCommandSpec{shell("sleep 600")}})
	must(t, err)
	canceled, err := h.CancelRun(ctx, second.RunID)
	must(t, err)
	if canceled.State != "canceled" {
		t.Errorf("got %+v", canceled)
	}
	var listed []string
	for one, err := range h.Runs(ctx, client.RunQuery{Sandbox: "box", Limit: 1}) {
		must(t, err)
		listed = append(listed, one.RunID)
	}
	if len(listed) != 2 || listed[0] != second.RunID || listed[1] != r.RunID {
		t.Errorf("got %v", listed)
	}
	_, err = h.ArtifactLink(ctx, r.RunID, "none", 0)
	if err == nil {
		t.Error("a link to an artifact that is not there was made")
	}
}

func TestArtifactsOfRuns(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, err := h.Artifacts(t.Context(), "a b", "latest") // this house serves no artifacts; the address is what counts
	wantCode(t, err, fault.NotFound)
	body, err := h.Artifact(t.Context(), "a b", "latest", "d/x")
	if err == nil {
		_, _ = io.Copy(io.Discard, body)
		body.Close()
		t.Error("an artifact that is not there was given")
	}
}
