// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// ExecAgain returns the result of a command that an earlier call of Exec, or of another verb
// that runs one, has begun in a sandbox: it follows the command from its first frame on, as
// Exec would. Of one whose log is gone, or that ran in a shell, it returns what is on
// record. began is false where the command is known never to have begun.
func (e *Engine) ExecAgain(ctx context.Context, c access.Caller, of sandbox.ID, processID string, r ExecRequest, sink func(sandbox.Frame) error) (res ExecResult, began bool, err error) {
	if c = c.Inside(); !c.Reaches(of) {
		return ExecResult{}, false, core.NoSandbox(string(of))
	}
	cmd, err := e.command(r, sink != nil)
	if err != nil {
		return ExecResult{}, false, err
	}
	if err := e.enter(c, access.SandboxesWrite); err != nil {
		return ExecResult{}, false, err
	}
	defer e.group.Leave()
	ev, err := e.commandRow(ctx, c.Project, of, processID)
	if err != nil {
		return ExecResult{}, false, err
	}
	if process.NeverBegan(ev) {
		return ExecResult{}, false, nil
	}
	f, leave, err := e.rejoin(ctx, c, ev, agent.Attaching{After: r.After, Lossless: cmd.Lossless})
	if err != nil {
		return ExecResult{}, false, err
	}
	r.TellLimit(&cmd)
	if f != nil && f.seen > 0 {
		r.Resumed()
	}
	if r.Started != nil {
		r.Started(processID)
	}
	here, cancel := e.group.Bind(ctx)
	defer cancel()
	ended := ev.Done || f != nil && f.process.Record().Result != nil
	if r.Wait > 0 && !ended {
		here, cancel = context.WithTimeout(here, r.Wait)
		defer cancel()
	}
	res.ProcessID = processID
	if f != nil {
		defer leave()
		f.sinkFailed = cancel
		f.give(&cmd, sink, r.Room)
		switch res.Result, err = f.follow(here); {
		case err == nil:
			f.kept(&res)
		case fault.Is(err, fault.NotFound): // its log is gone since
			f = nil
		default:
			return e.unended(ctx, f.detach(), f.sinkErr)
		}
	}
	if ev, err = e.commandEnd(here, ev); err != nil {
		return e.unended(ctx, ExecResult{ProcessID: processID, Running: true}, nil)
	}
	if process.NeverBegan(ev) {
		return ExecResult{}, false, nil
	}
	if f == nil {
		res.Result = *process.Record(ev).Result
		res.StdoutTruncated, res.StderrTruncated = ev.StdoutBytes > 0, ev.StderrBytes > 0
	}
	res.Changes, res.ChangesTotal = ev.Changes, ev.ChangesTotal
	res.ChangesComplete = len(ev.Changes) > 0 && len(ev.Changes) == ev.ChangesTotal
	return res, true, nil
}

// unended is what is to be said of a command that goes on: Wait passed, or why else nobody
// follows it.
func (e *Engine) unended(ctx context.Context, left ExecResult, gone error) (ExecResult, bool, error) {
	switch {
	case e.group.Context().Err() != nil:
		gone = core.Stopping()
	case gone == nil:
		gone = ctx.Err()
	}
	return left, true, gone
}

// rejoin attaches to a command that another follower completes; nil where there is nothing
// to attach to.
func (e *Engine) rejoin(ctx context.Context, c access.Caller, ev *sandbox.Event, at agent.Attaching) (*follower, func(), error) {
	u, err := e.peekAs(ctx, c, access.SandboxesWrite, string(ev.Sandbox), resumes)
	switch {
	case fault.Is(err, fault.State), fault.Is(err, fault.NotFound):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	p, err := u.l.client.AttachAs(ctx, ev.ProcessID, at)
	if err != nil {
		err = u.Fail(ctx, err)
		u.End()
		if fault.Is(err, fault.State) || fault.Is(err, fault.NotFound) {
			err = nil
		}
		return nil, nil, err
	}
	f := newFollower(u, ev, 0)
	f.process, f.guest, f.seen, f.lossless = p, true, at.After, at.Lossless
	return f, f.abandon, nil
}

// commandRow reads the row of a command, of a sandbox that may be gone.
func (e *Engine) commandRow(ctx context.Context, project string, of sandbox.ID, processID string) (*sandbox.Event, error) {
	q := store.EventQuery{
		Project: project, Sandbox: of, ProcessID: processID, Limit: 1,
		Types: []sandbox.EventType{sandbox.EventExec, sandbox.EventTerminal, sandbox.EventCode},
	}
	var rows []*sandbox.Event
	err := e.core.Store.View(ctx, func(tx store.Tx) (err error) {
		rows, _, err = tx.Events().List(q)
		return err
	})
	if err == nil && len(rows) == 0 {
		err = fault.New(fault.NotFound, "nothing is on record any more of the process %s of the sandbox %s", processID, of)
	}
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// commandEnd waits until the row of a command is complete.
func (e *Engine) commandEnd(ctx context.Context, ev *sandbox.Event) (*sandbox.Event, error) {
	for {
		changed := e.core.Store.Changed()
		ev, err := e.commandRow(ctx, ev.Project, ev.Sandbox, ev.ProcessID)
		if err != nil || ev.Done {
			return ev, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// EverRan reports whether a sandbox of the caller's project, which may be gone, was ever up.
func (e *Engine) EverRan(ctx context.Context, c access.Caller, id sandbox.ID) (bool, error) {
	if err := e.enter(c, access.SandboxesWrite); err != nil {
		return false, err
	}
	defer e.group.Leave()
	var rows []*sandbox.Event
	err := e.core.Store.View(ctx, func(tx store.Tx) (err error) {
		rows, _, err = tx.Events().List(store.EventQuery{Project: c.Project, Sandbox: id, Types: []sandbox.EventType{sandbox.EventStarted}, Limit: 1})
		return err
	})
	return len(rows) > 0, err
}

// ProcessAgain returns the record of a process that an earlier StartProcess has begun; began
// is as in ExecAgain.
func (e *Engine) ProcessAgain(ctx context.Context, c access.Caller, of sandbox.ID, processID string) (rec sandbox.Process, began bool, err error) {
	if c = c.Inside(); !c.Reaches(of) {
		return sandbox.Process{}, false, core.NoSandbox(string(of))
	}
	if err := e.enter(c, access.SandboxesWrite); err != nil {
		return sandbox.Process{}, false, err
	}
	defer e.group.Leave()
	ev, err := e.commandRow(ctx, c.Project, of, processID)
	if err != nil || process.NeverBegan(ev) {
		return sandbox.Process{}, false, err
	}
	u, err := e.peekAs(ctx, c, access.SandboxesWrite, string(of), never)
	if err != nil { // it is down, or gone
		return process.Record(ev), true, nil
	}
	defer u.End()
	if rec, err = u.l.client.Process(ctx, processID); err != nil {
		return process.Record(ev), true, nil
	}
	rec.Name, rec.Labels = ev.Name, ev.Labels
	return rec, true, nil
}
