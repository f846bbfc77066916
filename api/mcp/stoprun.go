// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"

	"sandpit.dev/access"
	"sandpit.dev/api/runs"
	"sandpit.dev/sandbox"
)

// stopRun ends a run, whoever waits for it or not, and shows how it stands then.
func (c *call) stopRun(ctx context.Context, id string) (*answer, error) {
	if c.args.has("signal") {
		c.args.add("signal", "is for processes; %s is a run, which is ended as a whole: leave signal out", id)
	}
	of := c.args.text("sandbox")
	if err := c.args.err(); err != nil {
		return nil, err
	}
	before, err := c.engine.RunOf(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	if !isOf(before, of) {
		return nil, otherRun(before, of)
	}
	run, err := c.engine.CancelRun(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	streams, err := c.engine.RunStreams(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	out := c.runAnswer(run, streams)
	how := "what ran of it was killed, and no other command was begun"
	switch {
	case before.State.Ended():
		how = "it had ended already; nothing was changed"
	case run.State == sandbox.RunCanceled && before.State == sandbox.RunQueued && run.StartedAt.IsZero():
		how = "it had not begun, and does not any more"
	case run.State.Ended() && run.State != sandbox.RunCanceled:
		how = "it came to its end by itself before it could be canceled"
	case !run.State.Ended():
		how = "it is told to end and has not yet"
	}
	out.lines = append([]string{how}, out.lines...)
	return out, nil
}

// nextOf gives the calls that wait for a run that has not ended, and that end it, in
// terms of what the caller has: tools, or the addresses of REST. Of one that has ended
// it gives the call that shows it.
func (c *call) nextOf(r *sandbox.Run) []string {
	of := r.Identifier
	if !validIdentifier(of) && r.Sandbox != "" {
		of = string(r.Sandbox)
	}
	own := c.ownTools() && c.Caller.May(access.SandboxesWrite)
	wait := "GET " + runs.Shape(r, nil, runAddresses).StatusURL + ", which shows how it stands"
	if own && c.has(GroupRuns) && validIdentifier(of) {
		wait = fmt.Sprintf(`call run_sandbox with {"identifier": %s, "run_id": %s}, which waits for its end`, quote(of), quote(r.ID))
	}
	if r.State.Ended() {
		return []string{"next: " + wait}
	}
	end := "POST /v1/runs/" + r.ID + "/cancel"
	if own && c.has(GroupProcess) {
		end = fmt.Sprintf(`call stop_process with {"process": %s}`, quote(r.ID))
	}
	return []string{"next: " + wait, "to end it: " + end}
}

// ownTools tells whether the caller has the tools of the default profile.
func (c *call) ownTools() bool { return c.tool.words == nil && c.tool.group != "" }
