// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"

	"sandpit.dev/agent"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
)

type createExec struct {
	Body v1.CreateExec
}

func (a *API) createExec(ctx context.Context, c *call, in *createExec) error {
	var sp spellings
	r, _ := execRequest(&sp, &in.Body.Exec) // sp has all that is wrong, here and below
	box, _ := createRequest(sp.part("sandbox"), &in.Body.Sandbox)
	if err := sp.err(); err != nil {
		return err
	}
	ctx, done := a.bound(ctx)
	defer done()
	if wantsEvents(c.r) {
		return a.streamCommand(ctx, c, r, &sp, func(s *events, r engine.ExecRequest, sink func(agent.Frame) error) (any, error) {
			p, res, err := a.engine.CreateExec(ctx, c.caller, box, r, func(p engine.Place) { s.sandbox = string(p.Sandbox.ID) }, sink)
			return v1.CreateExecOutcome{ExecPlace: placeOf(p), ExecOutcome: outcomeOf(&res)}, err
		})
	}
	var where engine.Place
	found := func(p engine.Place) { where = p }
	r.Started = func(id string) { // not before: a sandbox whose command does not begin may be gone
		c.w.Header().Set(processHeader, id)
		c.w.Header().Set(sandboxHeader, string(where.Sandbox.ID))
	}
	p, res, err := a.engine.CreateExec(ctx, c.caller, box, r, found, nil)
	if err != nil {
		return sp.rename(why(ctx, err))
	}
	out := v1.CreateExecResult{ExecPlace: placeOf(p)}
	out.ExecResult = c.resultOf(out.SandboxID, &res)
	return c.json(&out)
}

func placeOf(p engine.Place) v1.ExecPlace {
	if p.Sandbox == nil {
		return v1.ExecPlace{}
	}
	return v1.ExecPlace{SandboxID: string(p.Sandbox.ID), SandboxCreated: p.Created}
}
