// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	enginetokens "sandpit.dev/engine/tokens"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

// byRef is the input of operations that need nothing but a sandbox.
type byRef struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
}

// minTTL is the least time to live, in seconds: one that is over before the
// sandbox was used is a mistake.
const minTTL = 10

type createSandbox struct {
	Body v1.CreateSandbox
}

func (a *API) createSandbox(ctx context.Context, c *idempotency.Call, in *createSandbox) (v1.Sandbox, error) {
	var sp httpapi.Spellings
	r, err := createRequest(&sp, &in.Body, a.SizeTable())
	if err != nil {
		return v1.Sandbox{}, err
	}
	var token enginetokens.Request
	if in.Body.Token != nil {
		if token, err = a.tokensAPI().Request(in.Body.Token); err != nil {
			return v1.Sandbox{}, within("token.", err)
		}
	}
	if in.Body.Previews != nil {
		ch, err := previewsChange(in.Body.Previews)
		if err == nil {
			err = a.Ports.CheckPreviews(ch)
		}
		if err != nil {
			return v1.Sandbox{}, within("previews.", err)
		}
		r.Previews = ch.Of(r.Previews)
	}
	ctx, done := c.Bound(ctx)
	defer done()
	s, made, err := idempotency.Again(c, keyed.Sandbox, a.sandboxBy(ctx, c), a.everRan(ctx, c))
	created := made
	if !made && err == nil && in.Body.Skills != nil {
		err = a.Skills.CheckSkills(ctx, c.Caller, in.Body.Skills)
	}
	if !made && err == nil {
		s, created, err = a.Sandboxes.Create(ctx, c.Caller, r)
	}
	if err == nil && in.Body.Skills != nil {
		s, err = a.Skills.EquipSandbox(ctx, c.Caller, s, created, in.Body.Skills)
	}
	if err != nil {
		return v1.Sandbox{}, sp.Rename(httpapi.Cause(ctx, err))
	}
	if !created {
		c.Status = http.StatusOK
	}
	c.W.Header().Set("Location", "/v1/sandboxes/"+string(s.ID))
	out := a.oneSandbox(ctx, c, s)
	if !created {
		out.Differs = service.Differs(&r, s)
	}
	if in.Body.Token == nil {
		return out, nil
	}
	issued, err := a.tokensAPI().Make(ctx, c.Caller, string(s.ID), token)
	if err != nil {
		return v1.Sandbox{}, httpapi.Cause(ctx, err)
	}
	kept := issued
	kept.Secret, kept.SecretOmitted = "", true // nothing is stored of a token
	out.Token = &kept
	if err := c.KeepAs(out); err != nil {
		return v1.Sandbox{}, err
	}
	out.Token = &issued
	return out, nil
}

// within has an error about fields speak of those of an object of the request.
func within(object string, err error) error {
	e := fault.As(err)
	for i := range e.Fields {
		e.Fields[i].Name = object + e.Fields[i].Name
	}
	return e
}

// sandboxBy and everRan find what a request has made; see [again].
func (a *API) sandboxBy(ctx context.Context, c *idempotency.Call) func(string) (*sandbox.Sandbox, error) {
	return func(id string) (*sandbox.Sandbox, error) { return a.Sandboxes.Get(ctx, c.Caller, id) }
}

func (a *API) everRan(ctx context.Context, c *idempotency.Call) func(string) (bool, error) {
	return func(id string) (bool, error) { return a.Sandboxes.EverRan(ctx, c.Caller, sandbox.ID(id)) }
}

// createRequest makes the engine's request out of all spellings of a create.
func createRequest(sp *httpapi.Spellings, b *v1.CreateSandbox, sizes sandbox.Sizes) (engine.CreateRequest, error) {
	r := engine.CreateRequest{
		Env:      httpapi.EitherMap(sp, "env", b.Env, "env_vars", b.EnvVars),
		Metadata: b.Metadata,
		Account:  shape.AccountAsked(b.Account, b.User),
		Image:    httpapi.Given(b.Image),
		Runtime:  httpapi.Given(b.Runtime),
		Network:  networkWords{b.Network, b.NetworkEnabled, b.NetworkBlockAll, b.NetworkAllowList, b.DomainAllowList}.read(sp),
	}
	if key := httpapi.Either(sp, "key", b.Key, "session_key", b.SessionKey); key != nil {
		r.Key = *key
		if err := sandbox.CheckKey(sp.Name("key"), *key); err != nil {
			sp.Take(err)
		}
	}
	cpu, memory := size(sp, sizes, b.Size, httpapi.Either(sp, "cpu_cores", b.CPUCores, "cpu", b.CPU), b.MemoryMB)
	r.Limits = limits(sp, cpu, memory, b.DiskMB, b.Pids)
	r.IdleTimeout = clock(sp, "idle_timeout_seconds", b.IdleTimeoutSeconds, 0)
	r.Retention = clock(sp, "retention_seconds", b.RetentionSeconds, 0)
	if after := clock(sp, "archive_after_seconds", b.ArchiveAfterSeconds, 0); after != nil {
		r.ArchiveAfter = *after
	}
	r.OnIdle, r.OnExpiry, r.Checkpoints = idleAction(sp, b.IdleAction), onExpiry(sp, b.OnExpiry), checkpoints(sp, b.Checkpoints)
	r.AutoDelete, r.AutoStart, r.AutoResume, r.Sudo = b.AutoDelete, b.AutoStart, b.AutoResume, b.Sudo
	absolute, sliding := lifetimes(sp, b.TTLSeconds, b.TimeoutSeconds, b.TTLMode, false)
	if absolute != nil {
		r.TTL = *absolute
	}
	if sliding != nil {
		r.SlidingTTL = *sliding
	}
	askTemplate(sp, &r, b)
	if v := httpapi.Choice(sp, "if_exists", b.IfExists, "get", "refuse"); v != nil {
		r.Refuse = *v == "refuse"
	}
	r.ImageExact = b.ImageExact != nil && *b.ImageExact
	if b.FromSnapshot != nil {
		if r.From = *b.FromSnapshot; r.From == "" {
			sp.Add("from_snapshot", "is empty; leave it out for an empty disk")
		}
	}
	r.Mounts = mounts(sp, b.Volumes)
	r.Secrets = createSecrets(sp, b.Secrets)
	if b.Region != nil {
		sp.Add("region", "is %q; this server is one machine and has none", sandbox.Clip(*b.Region, 80))
	}
	return r, sp.Err()
}

// size turns a size into limits, where none are given beside it.
func size(sp *httpapi.Spellings, sizes sandbox.Sizes, name *string, cpu *float64, memory *int) (*float64, *int) {
	if name == nil {
		return cpu, memory
	}
	s, err := sizes.Named(*name)
	if err != nil {
		sp.Take(err)
		return cpu, memory
	}
	if cpu == nil {
		cpu = &s.CPU
	}
	if memory == nil {
		memory = &s.MemoryMB
	}
	return cpu, memory
}

// limits checks those that are given: a zero, which is "the default" to the
// engine, is out of bounds on the wire.
func limits(sp *httpapi.Spellings, cpu *float64, memory, disk, pids *int) (given sandbox.Limits) {
	check := sandbox.DefaultLimits()
	if cpu != nil {
		given.CPU, check.CPU = *cpu, *cpu
	}
	for _, f := range []struct{ from, given, check *int }{
		{memory, &given.MemoryMB, &check.MemoryMB},
		{disk, &given.DiskMB, &check.DiskMB},
		{pids, &given.Pids, &check.Pids},
	} {
		if f.from != nil {
			*f.given, *f.check = *f.from, *f.from
		}
	}
	sp.Take(check.Check())
	return given
}

func (a *API) getSandbox(ctx context.Context, c *idempotency.Call, in *byRef) (v1.Sandbox, error) {
	s, err := a.Sandboxes.Get(ctx, c.Caller, in.Ref)
	if err != nil {
		return v1.Sandbox{}, err
	}
	return a.oneSandbox(ctx, c, s), nil
}

func (a *API) deleteSandbox(ctx context.Context, c *idempotency.Call, in *byRef) (httpapi.None, error) {
	return httpapi.None{}, a.Sandboxes.Delete(ctx, c.Caller, in.Ref)
}

type updateSandbox struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.UpdateSandbox
}

func (a *API) updateSandbox(ctx context.Context, c *idempotency.Call, in *updateSandbox) (v1.Sandbox, error) {
	var sp httpapi.Spellings
	p, err := patch(&sp, &in.Body, a.SizeTable())
	if err != nil {
		return v1.Sandbox{}, err
	}
	s, err := a.Sandboxes.Update(ctx, c.Caller, in.Ref, p)
	if err != nil {
		return v1.Sandbox{}, sp.Rename(err)
	}
	return a.oneSandbox(ctx, c, s), nil
}

// oneSandbox is sandboxOf with what is inside the image.
func (a *API) oneSandbox(ctx context.Context, c *idempotency.Call, s *sandbox.Sandbox) v1.Sandbox {
	out := shape.Sandbox(s)
	out.Versions = a.Versions.Of(ctx, c.Caller, s.ImageDigest)
	out.ImageNote = image.Note(s.AskedImage, s.Image, out.Versions)
	return out
}
