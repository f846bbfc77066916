// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// StartProcess starts a process and gives its record at once. It belongs to the
// sandbox: it goes on whoever goes away, and the sandbox is in use until its end.
// Its event is completed then, by this server or the next. A program that cannot be
// run is no error: its record says that it ended, with 127 or 126.
func (e *Engine) StartProcess(ctx context.Context, c access.Caller, ref string, r StartRequest) (sandbox.Process, error) {
	c = c.Inside()
	if err := c.Require(access.SandboxesWrite); err != nil {
		return sandbox.Process{}, err
	}
	cmd, err := r.Command(e.settings.Load())
	if err != nil {
		return sandbox.Process{}, err
	}
	u, err := e.use(ctx, c, access.SandboxesWrite, ref, actProcess)
	if err != nil {
		return sandbox.Process{}, err
	}
	kind := sandbox.EventExec
	if cmd.Terminal != nil {
		kind = sandbox.EventTerminal
	}
	f, err := u.launch(ctx, cmd, kind, r.Mark, ignore, nil)
	if err != nil {
		return sandbox.Process{}, err // launch has ended the use
	}
	rec := f.process.Record()
	rec.Name, rec.Labels = r.Mark.Name, r.Mark.Labels
	f.detach()
	e.group.Spawn(f.stay)
	return rec, nil
}

// ignore is the sink of what nobody follows.
func ignore(sandbox.Frame) error { return nil }

// stay sees a command to its end that nobody listens to. It asks for the end
// alone, so that output costs the server nothing while nobody follows it.
func (f *follower) stay(ctx context.Context) {
	res, err := f.await(ctx)
	if err != nil {
		f.abandon()
		return
	}
	f.conclude(ctx, res)
}

// await is follow without the output.
func (f *follower) await(ctx context.Context) (sandbox.Result, error) {
	f.hangUp()
	f.process = nil
	limited, cancel := f.limited(ctx)
	defer cancel()
	for lost := 0; ; {
		began := time.Now()
		res, err := f.u.l.client.Wait(limited, f.event.ProcessID)
		switch {
		case err == nil:
			return f.u.l.told(f.event.ProcessID, res), nil
		case fault.Is(err, fault.Unsupported): // an agent of an earlier build
			return f.follow(ctx)
		}
		if time.Since(began) > lostTries*lostPause { // it had answered meanwhile
			lost = 0
		}
		if res, over, err := f.astray(ctx, limited, err, &lost); over {
			return res, err
		}
	}
}
