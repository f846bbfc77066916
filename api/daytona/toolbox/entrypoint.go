// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// entrypointSession is the id of the session whose one command is the start command of the sandbox's template or image. It is
// no shell: nothing else runs in it.
const entrypointSession = "entrypoint"

// startCommand returns the process of the sandbox's start command, as of its last start.
func (a *API) startCommand(ctx context.Context, c *httpapi.Call, ref string) (sandbox.Process, error) {
	s, err := a.Sandboxes.Get(ctx, c.Caller, ref)
	if err != nil {
		return sandbox.Process{}, err
	}
	id := s.StartProcess()
	if id == "" {
		return sandbox.Process{}, fault.New(fault.NotFound, "the sandbox %s has no entrypoint: neither its template nor its image has a start command", s.Ref()).
			WithReason(wire.CodeProcessNotFound).WithRemedy("create a snapshot with an entrypoint, and the sandbox of that; or run the command in a session")
	}
	p, err := a.Processes.Process(ctx, c.Caller, ref, id)
	if fault.Is(err, fault.NotFound) && fault.ReasonOf(err) == "" {
		err = fault.Wrap(fault.NotFound, err, "the start command of the sandbox %s has not begun, or is no longer kept", s.Ref()).
			WithReason(wire.CodeProcessNotFound).WithRemedy("start the sandbox, and ask again in a moment")
	}
	return p, err
}

func (a *API) getEntrypoint(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Session, error) {
	p, err := a.startCommand(ctx, c, in.Ref)
	if err != nil {
		return wire.Session{}, err
	}
	return wire.Session{SessionID: entrypointSession, Commands: []wire.Command{commandOf(&p)}}, nil
}

type entrypointLogs struct {
	Ref    string `path:"id"`
	Follow *bool  `query:"follow"`
}

// entrypointLogs answers with what the start command has written by now, or follows it over a WebSocket.
func (a *API) entrypointLogs(ctx context.Context, c *httpapi.Call, in *entrypointLogs) error {
	p, err := a.startCommand(ctx, c, in.Ref)
	if err != nil {
		return err
	}
	return a.processLogs(ctx, c, in.Ref, &p)
}
