// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/sandbox"
)

// Place is where a first command runs.
type Place struct {
	Sandbox *sandbox.Sandbox // as it was before the command
	Created bool             // it was made for the command; else it had the key already
}

// CreateExec is Create, and then Exec in what that gives: a sandbox and its first
// command's result in one call. r.Wait and r.Timeout begin with the command.
//
// A command that is wrong makes no sandbox. One that could not begin, in a sandbox
// that was made for it and has no key, takes that with it: the caller gets an error,
// and nobody would know what to delete. Once it has begun, all is as with Exec, and
// the sandbox stays.
//
// found, if not nil, is called once, when the sandbox is there and before Started.
// Fields that Create finds wrong are told below "sandbox.".
func (e *Engine) CreateExec(ctx context.Context, c access.Caller, in CreateRequest, r ExecRequest, found func(Place), sink func(sandbox.Frame) error) (Place, ExecResult, error) {
	if err := e.enterWork(c, access.SandboxesWrite); err != nil { // here, so that the engine's end waits for the cleaning up
		return Place{}, ExecResult{}, err
	}
	defer e.group.Leave()
	if _, err := e.command(r, sink != nil); err != nil {
		return Place{}, ExecResult{}, err
	}
	var p Place
	var err error
	if p.Sandbox, p.Created, err = e.Create(ctx, c, in); err != nil {
		return Place{}, ExecResult{}, check.Below("sandbox.", err)
	}
	if found != nil {
		found(p)
	}
	res, err := e.Exec(ctx, c, string(p.Sandbox.ID), r, sink)
	if err != nil && res.ProcessID == "" && p.Created && p.Sandbox.Key == "" {
		ctx, cancel := core.Aside(ctx)
		defer cancel()
		e.abandon(ctx, p.Sandbox.ID, "its first command could not begin: "+core.Reason(err))
	}
	return p, res, err
}
