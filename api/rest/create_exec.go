// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

type createExec struct {
	Body v1.CreateExec
}

func (a *API) createExec(ctx context.Context, c *idempotency.Call, in *createExec) error {
	var sp httpapi.Spellings
	r, _ := execRequest(&sp, &in.Body.Exec) // sp has all that is wrong, here and below
	box, _ := createRequest(sp.Part("sandbox"), &in.Body.Sandbox, a.SizeTable())
	if in.Body.Sandbox.Skills != nil {
		sp.Add("sandbox.skills", "is not taken here; create the sandbox with them, and run the command in it then")
	}
	sp.Take(mayStreamInput(c, &in.Body.Exec))
	if err := sp.Err(); err != nil {
		return err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	ctx, attach := c.AttachLater(ctx)
	defer attach()
	if wantsStream(c) {
		return a.streamCommand(ctx, c, r, &sp, func(s *commandEvents, r engine.ExecRequest, sink func(sandbox.Frame) error) (any, error) {
			started := r.Started
			r.Started = func(id string) { attach(); started(id) }
			p, res, err := a.runCreateExec(ctx, c, box, r, func(p engine.Place) { s.sandbox = string(p.Sandbox.ID) }, sink)
			if err != nil {
				return nil, err
			}
			out := v1.CreateExecOutcome{ExecPlace: placeOf(p, &box), ExecOutcome: outcomeOf(&res)}
			return &out, complete(c, &out.ExecOutcome, &out)
		})
	}
	var where engine.Place
	found := func(p engine.Place) { where = p }
	r.Started = func(id string) { // not before: a sandbox whose command does not begin may be gone
		attach()
		c.W.Header().Set(v1.ProcessHeader, id)
		c.W.Header().Set(v1.SandboxHeader, string(where.Sandbox.ID))
	}
	r.Room = c.Room
	p, res, err := a.runCreateExec(ctx, c, box, r, found, nil)
	if err != nil {
		return sp.Rename(httpapi.Cause(ctx, err))
	}
	place := placeOf(p, &box)
	goesOn(c, place.SandboxID, &res)
	kept := v1.CreateExecOutcome{ExecPlace: place, ExecOutcome: outcomeOf(&res)}
	if err := complete(c, &kept.ExecOutcome, &kept); err != nil {
		return err
	}
	if o := outputsOf(&res); o.large() {
		return c.AnswerText(&kept, o...)
	}
	return c.AnswerHeld(&v1.CreateExecResult{ExecPlace: kept.ExecPlace, ExecResult: resultOf(&kept.ExecOutcome, &res)})
}

// runCreateExec makes a sandbox and runs a command in it, or goes on where the same request
// before got to: it may have made the sandbox, and not begun the command.
func (a *API) runCreateExec(ctx context.Context, c *idempotency.Call, in engine.CreateRequest, r engine.ExecRequest, found func(engine.Place), sink func(sandbox.Frame) error) (engine.Place, engine.ExecResult, error) {
	box, made := c.Made(keyed.Sandbox)
	if t, ok := c.Made(keyed.Process); ok {
		p := engine.Place{Created: made, Sandbox: &sandbox.Sandbox{ID: t.Sandbox}}
		found(p)
		res, began, err := a.Commands.ExecAgain(ctx, c.Caller, t.Sandbox, t.ID, r, sink)
		if began || err != nil {
			return p, res, err
		}
	}
	if made {
		s, err := a.Sandboxes.Get(ctx, c.Caller, box.ID)
		if err == nil {
			p := engine.Place{Created: true, Sandbox: s}
			found(p)
			res, err := a.Commands.Exec(ctx, c.Caller, box.ID, r, sink)
			return p, res, err
		}
		if !fault.Is(err, fault.NotFound) {
			return engine.Place{}, engine.ExecResult{}, err
		}
	}
	if c.Repeated() { // it made nothing, or that is undone
		c.Renew()
	}
	return a.Commands.CreateExec(ctx, c.Caller, in, r, found, sink)
}

func placeOf(p engine.Place, asked *engine.CreateRequest) v1.ExecPlace {
	if p.Sandbox == nil {
		return v1.ExecPlace{}
	}
	out := v1.ExecPlace{SandboxID: string(p.Sandbox.ID), SandboxCreated: p.Created}
	if !p.Created && p.Sandbox.State != "" { // else no more than its id is known: the request was sent again
		out.SandboxDiffers = service.Differs(asked, p.Sandbox)
	}
	return out
}
