// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"fmt"
	"maps"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	apiruns "sandpit.dev/api/runs"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

// runAddresses are where runs are, for who knows of one by this coat.
var runAddresses = apiruns.Addresses{Status: "/v1/runs/{id}", Events: "/v1/runs/{id}/events"}

type startRun struct {
	Ref  string `path:"id" doc:"the sandbox's id, or a key: then it is made if it is missing"`
	Body v1.StartRun
}

func (a *API) startRun(ctx context.Context, c *idempotency.Call, in *startRun) (v1.Run, error) {
	var sp httpapi.Spellings
	b := &in.Body
	r := runs.Request{Sandbox: in.Ref, User: httpapi.Given(b.AsUser), GoOn: b.ContinueOnError, Lock: b.LockSandbox}
	if b.TTLSeconds != nil {
		if most := int64(runs.MaxTTL / time.Second); *b.TTLSeconds < 1 || *b.TTLSeconds > most {
			sp.Add("ttl_seconds", "%d is outside 1 to %d seconds", *b.TTLSeconds, most)
		} else {
			r.TTL = time.Duration(*b.TTLSeconds) * time.Second
		}
	}
	wait := time.Duration(0)
	if b.WaitSeconds != nil {
		wait = span(&sp, "wait_seconds", *b.WaitSeconds)
	}
	for i := range b.Commands {
		r.Commands = append(r.Commands, runCommandOf(&sp, fmt.Sprintf("commands[%d].", i), b, &b.Commands[i]))
	}
	if err := sp.Err(); err != nil {
		return v1.Run{}, err
	}
	run, made, err := idempotency.Again(c, keyed.Run, func(id string) (*sandbox.Run, error) { return a.Runs.Get(ctx, c.Caller, id) }, nil)
	if !made && err == nil {
		run, err = a.Runs.Start(ctx, c.Caller, r)
	}
	if err != nil {
		return v1.Run{}, err
	}
	c.W.Header().Set("Location", "/v1/runs/"+run.ID)
	if wait > 0 {
		ctx, done := c.Bound(ctx)
		defer done()
		ctx, leave := c.Attached(ctx)
		defer leave()
		if run, err = a.Runs.Await(ctx, c.Caller, run.ID, wait); err != nil {
			return v1.Run{}, httpapi.Cause(ctx, err)
		}
	}
	return a.runOf(ctx, c, run)
}

func runCommandOf(sp *httpapi.Spellings, at string, b *v1.StartRun, s *v1.RunCommandSpec) runs.Command {
	r := runs.Command{Shell: httpapi.Given(s.Shell), Argv: s.Argv, Cwd: httpapi.Given(s.Cwd), AllowFailure: s.AllowFailure}
	if r.Cwd == "" {
		r.Cwd = httpapi.Given(b.DefaultCwd)
	}
	if len(b.DefaultEnv)+len(s.Env) > 0 {
		r.Env = make(map[string]string)
		maps.Copy(r.Env, b.DefaultEnv)
		maps.Copy(r.Env, s.Env)
	}
	if s.TimeoutMS != nil {
		if most := engine.MaxCommandTimeout.Milliseconds(); *s.TimeoutMS < 1 || *s.TimeoutMS > most {
			sp.Add(at+"timeout_ms", "%d is outside 1 to %d", *s.TimeoutMS, most)
		} else {
			r.Timeout = time.Duration(*s.TimeoutMS) * time.Millisecond
		}
	}
	return r
}

// runOf is a run with what is kept of its output.
func (a *API) runOf(ctx context.Context, c *idempotency.Call, r *sandbox.Run) (v1.Run, error) {
	streams, err := a.Runs.Streams(ctx, c.Caller, r.ID)
	if err != nil {
		return v1.Run{}, err
	}
	return apiruns.Shape(r, streams, runAddresses), nil
}

type byRun struct {
	ID string `path:"run" doc:"the run's id"`
}

func (a *API) getRun(ctx context.Context, c *idempotency.Call, in *byRun) (v1.Run, error) {
	r, err := a.Runs.Get(ctx, c.Caller, in.ID)
	if err != nil {
		return v1.Run{}, err
	}
	return a.runOf(ctx, c, r)
}

func (a *API) cancelRun(ctx context.Context, c *idempotency.Call, in *byRun) (v1.Run, error) {
	r, err := a.Runs.Cancel(ctx, c.Caller, in.ID)
	if err != nil {
		return v1.Run{}, err
	}
	return a.runOf(ctx, c, r)
}

type runEvents struct {
	byRun
	After *int64 `query:"after" doc:"only those that come after the event with this id"`
}

func (a *API) runEvents(ctx context.Context, c *idempotency.Call, in *runEvents) error {
	ctx, done := c.Bound(ctx)
	defer done()
	return apiruns.Stream(c.W, c.R.WithContext(ctx), a.Runs, c.Caller, in.ID, apiruns.Timing{Heartbeat: c.Heartbeat(), Stall: c.Stall()})
}

type runPage struct {
	Limit  *int    `query:"limit" doc:"most rows of a page, 1 to 500; default 50"`
	Cursor *string `query:"cursor" doc:"next_cursor of the page before"`
}

type listRunsOf struct {
	Ref string `path:"id" doc:"the sandbox's id or key, also of one that is gone"`
	runPage
}

func (a *API) listRunsOf(ctx context.Context, c *idempotency.Call, in *listRunsOf) (v1.RunList, error) {
	return a.listRunsBy(ctx, c, in.Ref, &in.runPage)
}

func (a *API) listRuns(ctx context.Context, c *idempotency.Call, in *runPage) (v1.RunList, error) {
	return a.listRunsBy(ctx, c, "", in)
}

func (a *API) listRunsBy(ctx context.Context, c *idempotency.Call, of string, p *runPage) (v1.RunList, error) {
	r := runs.ListRequest{Sandbox: of, Limit: engine.DefaultPage, Cursor: httpapi.Given(p.Cursor)}
	if p.Limit != nil {
		if r.Limit = *p.Limit; r.Limit < 1 || r.Limit > engine.MaxPage {
			return v1.RunList{}, fault.InvalidField("limit", "%d is outside 1 to %d", r.Limit, engine.MaxPage)
		}
	}
	got, err := a.Runs.List(ctx, c.Caller, r)
	if err != nil {
		return v1.RunList{}, err
	}
	out := v1.RunList{Items: make([]v1.Run, 0, len(got.Items)), NextCursor: shape.TextOrNull(got.Next)}
	for _, one := range got.Items {
		out.Items = append(out.Items, apiruns.Shape(one, nil, runAddresses))
	}
	return out, nil
}

type createArtifactLink struct {
	byRun
	Body v1.CreateArtifactLink
}

// Bounds of how long a link to an artifact is good.
const (
	defaultArtifactLink = time.Hour
	minArtifactLink     = time.Minute
	maxArtifactLink     = 7 * 24 * time.Hour
)

func (a *API) createArtifactLink(ctx context.Context, c *idempotency.Call, in *createArtifactLink) (v1.ArtifactLink, error) {
	life := defaultArtifactLink
	if s := in.Body.ExpiresSeconds; s != nil {
		if least, most := int64(minArtifactLink/time.Second), int64(maxArtifactLink/time.Second); *s < least || *s > most {
			return v1.ArtifactLink{}, fault.InvalidField("expires_seconds", "%d is outside %d to %d", *s, least, most)
		}
		life = time.Duration(*s) * time.Second
	}
	r, err := a.Runs.Get(ctx, c.Caller, in.ID)
	if err != nil {
		return v1.ArtifactLink{}, err
	}
	if a.links == nil {
		return v1.ArtifactLink{}, fault.New(fault.Unsupported, "this server makes no links")
	}
	for i := range r.Artifacts {
		if r.Artifacts[i].Path == in.Body.Path && r.ArtifactsKept {
			until := time.Now().Add(life).UTC().Truncate(time.Second)
			return v1.ArtifactLink{URL: apiruns.Link(a.links, c.R, r, in.Body.Path, until), ExpiresAt: until}, nil
		}
	}
	return v1.ArtifactLink{}, fault.New(fault.NotFound, "the run has no artifact %q", sandbox.Clip(in.Body.Path, 200)).
		WithRemedy("GET %s lists what it has", apiruns.Address(r, ""))
}
