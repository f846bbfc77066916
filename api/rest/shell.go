// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

type byShell struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Name string `path:"name" doc:"the shell's name"`
}

type bySandbox struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
}

type createShell struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.CreateShell
}

func (a *API) createShell(ctx context.Context, c *idempotency.Call, in *createShell) (v1.Shell, error) {
	var sp httpapi.Spellings
	r := code.ShellRequest{
		Name: httpapi.Given(in.Body.Name), Cwd: httpapi.Given(in.Body.Cwd), Env: in.Body.Env,
		User: httpapi.Given(httpapi.Either(&sp, "as_user", in.Body.AsUser, "user", in.Body.User)),
	}
	if in.Body.Name != nil && r.Name == "" {
		sp.Add("name", "is empty; leave it out for one that is made up")
	}
	if err := sp.Err(); err != nil {
		return v1.Shell{}, err
	}
	s, made, err := idempotency.Again(c, keyed.Context, a.contextBy(ctx, c, in.Ref, a.Shells.Shells), nil)
	if !made && err == nil {
		s, err = a.Shells.CreateShell(ctx, c.Caller, in.Ref, r)
	}
	if err != nil {
		return v1.Shell{}, sp.Rename(err)
	}
	c.W.Header().Set("Location", shellPath(in.Ref, s.Name))
	return shellOf(s), nil
}

// contextBy finds what a request has made; see [again].
func (a *API) contextBy(ctx context.Context, c *idempotency.Call, ref string, list func(context.Context, access.Caller, string) ([]code.Context, error)) func(string) (code.Context, error) {
	return func(id string) (code.Context, error) {
		all, err := list(ctx, c.Caller, ref)
		if i := slices.IndexFunc(all, func(one code.Context) bool { return one.ID == id }); i >= 0 {
			return all[i], nil
		}
		if err == nil {
			err = fault.New(fault.NotFound, "there is no context %q", id)
		}
		return code.Context{}, err
	}
}

func shellPath(ref, name string) string {
	return "/v1/sandboxes/" + url.PathEscape(ref) + "/shells/" + url.PathEscape(name)
}

func (a *API) listShells(ctx context.Context, c *idempotency.Call, in *bySandbox) (v1.ShellList, error) {
	all, err := a.Shells.Shells(ctx, c.Caller, in.Ref)
	if err != nil {
		return v1.ShellList{}, err
	}
	out := v1.ShellList{Items: make([]v1.Shell, 0, len(all))}
	for _, s := range all {
		out.Items = append(out.Items, shellOf(s))
	}
	return out, nil
}

func (a *API) getShell(ctx context.Context, c *idempotency.Call, in *byShell) (v1.Shell, error) {
	s, err := a.Shells.Shell(ctx, c.Caller, in.Ref, in.Name)
	if err != nil {
		return v1.Shell{}, err
	}
	return shellOf(s), nil
}

func (a *API) deleteShell(ctx context.Context, c *idempotency.Call, in *byShell) (httpapi.None, error) {
	return httpapi.None{}, a.Shells.DeleteShell(ctx, c.Caller, in.Ref, in.Name)
}

func (a *API) interruptShell(ctx context.Context, c *idempotency.Call, in *byShell) (httpapi.None, error) {
	return httpapi.None{}, a.Shells.InterruptShell(ctx, c.Caller, in.Ref, in.Name)
}

func shellOf(s code.Context) v1.Shell {
	return v1.Shell{
		Name: s.Name, ShellID: s.ID, Status: string(s.Status), EndedReason: s.Ended, ProcessID: s.ProcessID,
		Cwd: s.Cwd, User: s.User, CreatedAt: s.CreatedAt.UTC(), UsedAt: shape.TimeOrNull(s.UsedAt), Queued: s.Queued,
	}
}

type shellExec struct {
	byShell
	Body v1.Exec
}

func (a *API) shellExec(ctx context.Context, c *idempotency.Call, in *shellExec) error {
	var sp httpapi.Spellings
	r, err := execRequest(&sp, &in.Body)
	if err != nil {
		return err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	if wantsStream(c) {
		return a.streamCommand(ctx, c, r, &sp, func(_ *commandEvents, r engine.ExecRequest, sink func(sandbox.Frame) error) (any, error) {
			res, err := a.runShellExec(ctx, c, in, r, deafened(c, sink))
			if err != nil {
				return nil, err
			}
			out := v1.ShellExecOutcome{ExecOutcome: outcomeOf(&res.ExecResult), Shell: shellStateOf(res.Shell)}
			return &out, complete(c, &out.ExecOutcome, &out)
		})
	}
	r.Started = func(id string) { c.W.Header().Set(v1.ProcessHeader, id) }
	res, err := a.runShellExec(ctx, c, in, r, nil)
	if err != nil {
		return sp.Rename(httpapi.Cause(ctx, err))
	}
	return shellResult(c, in.Ref, &res)
}

// runShellExec runs a command in a shell, or goes on with that of the same request before,
// whose output the shell may have forgotten.
func (a *API) runShellExec(ctx context.Context, c *idempotency.Call, in *shellExec, r engine.ExecRequest, sink func(sandbox.Frame) error) (code.ShellResult, error) {
	t, ok := c.Made(keyed.Process)
	if !ok {
		return a.Shells.ShellExec(ctx, c.Caller, in.Ref, in.Name, r, sink)
	}
	wait := r.Wait
	if wait == 0 {
		wait = engine.MaxCommandTimeout
	}
	res, err := a.Shells.ShellCommand(ctx, c.Caller, in.Ref, in.Name, t.ID, wait)
	if fault.Is(err, fault.NotFound) {
		var began bool
		res.Shell.Name = in.Name
		if res.ExecResult, began, err = a.Commands.ExecAgain(ctx, c.Caller, t.Sandbox, t.ID, r, nil); err == nil && !began {
			c.Renew()
			return a.Shells.ShellExec(ctx, c.Caller, in.Ref, in.Name, r, sink)
		}
	} else if r.Started != nil {
		r.Started(t.ID)
	}
	if err != nil || sink == nil {
		return res, err
	}
	for stream, data := range map[sandbox.Stream][]byte{sandbox.Stdout: res.Stdout, sandbox.Stderr: res.Stderr} {
		if len(data) > 0 {
			_ = sink(sandbox.Frame{Stream: stream, At: time.Now(), Data: data}) // it tells nobody of a client that has gone
		}
	}
	return res, nil
}

type shellCommand struct {
	byShell
	ID   string   `path:"pid" doc:"the process_id of the command"`
	Wait *float64 `query:"wait_seconds" doc:"how long to wait for its end, 0 to 86400; default 0"`
}

func (a *API) shellCommand(ctx context.Context, c *idempotency.Call, in *shellCommand) error {
	var sp httpapi.Spellings
	var wait time.Duration
	if in.Wait != nil {
		wait = span(&sp, "wait_seconds", *in.Wait)
	}
	if err := sp.Err(); err != nil {
		return err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	res, err := a.Shells.ShellCommand(ctx, c.Caller, in.Ref, in.Name, in.ID, wait)
	if err != nil {
		return httpapi.Cause(ctx, err)
	}
	return shellResult(c, in.Ref, &res)
}

// shellResult answers a command's result, or that it runs.
func shellResult(c *idempotency.Call, ref string, res *code.ShellResult) error {
	if res.Running {
		c.Status = http.StatusAccepted
		c.W.Header().Set("Location", shellPath(ref, res.Shell.Name)+"/commands/"+res.ProcessID)
	}
	kept := v1.ShellExecOutcome{ExecOutcome: outcomeOf(&res.ExecResult), Shell: shellStateOf(res.Shell)}
	if err := complete(c, &kept.ExecOutcome, &kept); err != nil {
		return err
	}
	if o := outputsOf(&res.ExecResult); o.large() {
		return c.AnswerText(&kept, o...)
	}
	return c.AnswerHeld(&v1.ShellExecResult{ExecResult: resultOf(&kept.ExecOutcome, &res.ExecResult), Shell: kept.Shell})
}

func shellStateOf(s code.ShellState) v1.ShellState {
	return v1.ShellState{Name: s.Name, ShellID: s.ID, Restarted: s.Restarted, Ended: s.Ended}
}
