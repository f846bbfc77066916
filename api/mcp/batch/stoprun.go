// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"context"
	"fmt"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/toolset"
	apiruns "sandpit.dev/api/runs"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Stop ends a run, whoever waits for it or not, and shows how it stands then.
func Stop(ctx context.Context, c *toolset.Call, id string) (*toolset.Answer, error) {
	if c.Args.Has("signal") {
		c.Args.Add("signal", "is for processes; %s is a run, which is ended as a whole: leave signal out", id)
	}
	of := c.Args.Text("sandbox")
	if err := c.Args.Err(); err != nil {
		return nil, err
	}
	before, err := c.Runs.Get(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	if !IsOf(before, of) {
		return nil, OtherRun(before, of)
	}
	run, err := c.Runs.Cancel(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	streams, err := c.Runs.Streams(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	out := Answer(c, run, streams)
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
	out.Lines = append([]string{how}, out.Lines...)
	return out, nil
}

// Next returns the calls that wait for a run that has not ended, and that end it, in
// terms of what the caller has: tools, or the addresses of REST. Of one that has ended
// it returns the call that shows it.
func Next(c *toolset.Call, r *sandbox.Run) []string {
	of := r.Identifier
	if !validIdentifier(of) && r.Sandbox != "" {
		of = string(r.Sandbox)
	}
	own := c.OwnTools() && c.Caller.May(access.SandboxesWrite)
	wait := "GET " + apiruns.Shape(r, nil, Addresses).StatusURL + ", which shows how it stands"
	if own && c.Has(toolset.GroupRuns) && validIdentifier(of) {
		wait = fmt.Sprintf(`call run_sandbox with {"identifier": %s, "run_id": %s}, which waits for its end`, toolset.Quote(of), toolset.Quote(r.ID))
	}
	if r.State.Ended() {
		return []string{"next: " + wait}
	}
	end := "POST /v1/runs/" + r.ID + "/cancel"
	if own && c.Has(toolset.GroupProcess) {
		end = fmt.Sprintf(`call stop_process with {"process": %s}`, toolset.Quote(r.ID))
	}
	return []string{"next: " + wait, "to end it: " + end}
}

// IsOf reports whether a run is of the sandbox of this name or id; "": of any.
func IsOf(r *sandbox.Run, of string) bool {
	return of == "" || of == r.Identifier || of == string(r.Sandbox)
}

// OtherRun is the error that a run is not of the sandbox that was named.
func OtherRun(r *sandbox.Run, of string) error {
	return fault.New(fault.NotFound, "the run %s is of another sandbox than %q", r.ID, toolset.Clip(of)).
		WithRemedy("leave sandbox out: a run's id says which it is of")
}
