// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

// becoming makes an operation that needs a sandbox's name and answers with what
// it is then. Where a request with the same key is on record as having done it, by done, it is not done again.
func (a *API) becoming(do func(context.Context, access.Caller, string) (*sandbox.Sandbox, error), done sandbox.EventType) func(context.Context, *idempotency.Call, *byRef) (v1.Sandbox, error) {
	return func(ctx context.Context, c *idempotency.Call, in *byRef) (v1.Sandbox, error) {
		if was, ok := c.Made(keyed.Change); ok && was.ID == string(done) {
			do = a.Sandboxes.Get
		}
		s, err := do(ctx, c.Caller, in.Ref)
		if err != nil {
			return v1.Sandbox{}, err
		}
		return a.oneSandbox(ctx, c, s), nil
	}
}

type stopSandbox struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.StopSandbox
}

func (a *API) stopSandbox(ctx context.Context, c *idempotency.Call, in *stopSandbox) (v1.Sandbox, error) {
	stop := a.Sandboxes.Stop
	if g := in.Body.GraceSeconds; g != nil {
		if *g < 0 || *g > engine.MaxGrace.Seconds() {
			return v1.Sandbox{}, fault.InvalidField("grace_seconds", "%g is outside 0 to %g", *g, engine.MaxGrace.Seconds())
		}
		stop = func(ctx context.Context, who access.Caller, ref string) (*sandbox.Sandbox, error) {
			return a.Sandboxes.StopWithin(ctx, who, ref, time.Duration(*g*float64(time.Second)))
		}
	}
	return a.becoming(stop, sandbox.EventStopped)(ctx, c, &byRef{in.Ref})
}

type restartSandbox struct {
	Ref      string `path:"id" doc:"the sandbox's id or key"`
	KeepDisk *bool  `query:"keep_disk" doc:"true, as without it. An older server, whose restart empties the disk, refuses the parameter and changes nothing"`
}

func (a *API) restartSandbox(ctx context.Context, c *idempotency.Call, in *restartSandbox) (v1.Sandbox, error) {
	if in.KeepDisk != nil && !*in.KeepDisk {
		return v1.Sandbox{}, fault.InvalidField("keep_disk", "is false, but a restart keeps the disk").
			WithRemedy("for an empty disk: POST /v1/sandboxes/%s/reset", in.Ref)
	}
	return a.becoming(a.Sandboxes.Restart, sandbox.EventStarted)(ctx, c, &byRef{in.Ref})
}

type rollbackSandbox struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.RollbackSandbox
}

func (a *API) rollbackSandbox(ctx context.Context, c *idempotency.Call, in *rollbackSandbox) (v1.Sandbox, error) {
	if in.Body.To == "" {
		return v1.Sandbox{}, fault.InvalidField("to", "is missing").
			WithRemedy("name a snapshot (GET /v1/sandboxes/%s/snapshots lists them), or send base for the image", in.Ref)
	}
	return a.becoming(func(ctx context.Context, who access.Caller, ref string) (*sandbox.Sandbox, error) {
		return a.Snapshots.Rollback(ctx, who, ref, in.Body.To)
	}, sandbox.EventRestored)(ctx, c, &byRef{in.Ref})
}

type forkSandbox struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.ForkSandbox
}

func (a *API) forkSandbox(ctx context.Context, c *idempotency.Call, in *forkSandbox) (v1.SandboxList, error) {
	var sp httpapi.Spellings
	b := &in.Body
	r := engine.ForkRequest{Count: 1, From: httpapi.Given(b.From), Key: httpapi.Given(b.Key), Metadata: b.Metadata}
	if b.Count != nil {
		if r.Count = *b.Count; r.Count < 1 || r.Count > engine.MaxForks {
			sp.Add("count", "%d is outside 1 to %d", r.Count, engine.MaxForks)
		}
	}
	if b.From != nil && *b.From == "" {
		sp.Add("from", "is empty; leave it out for the sandbox as it is now")
	}
	if b.Key != nil {
		sp.Take(sandbox.CheckKey("key", *b.Key))
		if r.Count > 1 {
			sp.Add("key", "%q cannot be that of %d forks; leave it out, or ask for one", sandbox.Clip(*b.Key, 80), r.Count)
		}
	}
	if err := sp.Err(); err != nil {
		return v1.SandboxList{}, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	// All of them are made or none: the first stands for all.
	_, made, err := idempotency.Again(c, keyed.Sandbox, a.sandboxBy(ctx, c), a.everRan(ctx, c))
	var forks []*sandbox.Sandbox
	for _, t := range c.MadeAll(keyed.Sandbox) {
		var s *sandbox.Sandbox
		if s, err = a.Sandboxes.Get(ctx, c.Caller, t.ID); err != nil {
			break
		}
		forks = append(forks, s)
	}
	if !made && err == nil {
		forks, err = a.Snapshots.Fork(ctx, c.Caller, in.Ref, r)
	}
	if err != nil {
		return v1.SandboxList{}, httpapi.Cause(ctx, err)
	}
	out := v1.SandboxList{Items: make([]v1.Sandbox, 0, len(forks))}
	for _, s := range forks {
		out.Items = append(out.Items, shape.Sandbox(s))
	}
	return out, nil
}

type promoteSandbox struct {
	Ref  string `path:"id" doc:"the fork's id or key"`
	Body v1.PromoteSandbox
}

func (a *API) promoteSandbox(ctx context.Context, c *idempotency.Call, in *promoteSandbox) (v1.Sandbox, error) {
	r := engine.PromoteRequest{Name: httpapi.Given(in.Body.Name)}
	if in.Body.Name != nil {
		if err := sandbox.CheckSnapshotName("name", r.Name); err != nil {
			return v1.Sandbox{}, err
		}
	}
	if was, ok := c.Made(keyed.Change); ok && was.ID == string(sandbox.EventPromoted) {
		in.Ref = string(was.Sandbox) // the fork's own key is no more
	}
	return a.becoming(func(ctx context.Context, who access.Caller, ref string) (*sandbox.Sandbox, error) {
		return a.Snapshots.Promote(ctx, who, ref, r)
	}, sandbox.EventPromoted)(ctx, c, &byRef{in.Ref})
}

type diffSandbox struct {
	Ref   string  `path:"id" doc:"the sandbox's id or key"`
	From  *string `query:"from" doc:"the name of one of its snapshots, also as SANDBOX/NAME, the id of any, or base (the default): the image"`
	To    *string `query:"to" doc:"likewise, or now (the default): the sandbox as it is"`
	Limit *int    `query:"limit" doc:"most changes, 1 to 10000; default 1000"`
}

func (a *API) diffSandbox(ctx context.Context, c *idempotency.Call, in *diffSandbox) (v1.Diff, error) {
	r := engine.DiffRequest{From: httpapi.Given(in.From), To: httpapi.Given(in.To), Limit: engine.DefaultDiff}
	if in.Limit != nil {
		if r.Limit = *in.Limit; r.Limit < 1 || r.Limit > engine.MaxDiff {
			return v1.Diff{}, fault.InvalidField("limit", "%d is outside 1 to %d", r.Limit, engine.MaxDiff)
		}
	}
	got, err := a.Snapshots.Diff(ctx, c.Caller, in.Ref, r)
	if err != nil {
		return v1.Diff{}, err
	}
	out := v1.Diff{From: r.From, To: r.To, Items: make([]v1.DiffChange, 0, len(got.Files)), Total: max(got.Total, len(got.Files))}
	if out.From == "" {
		out.From = "base"
	}
	if out.To == "" {
		out.To = "now"
	}
	out.Truncated = out.Total > len(got.Files) || !got.Complete
	for _, ch := range got.Files {
		out.Items = append(out.Items, v1.DiffChange{Path: ch.Path, Escaped: ch.Escaped, Action: ch.Action, SizeBytes: ch.Size})
	}
	return out, nil
}
