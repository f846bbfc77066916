// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/query"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

type byProcess struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
	ID  string `path:"pid" doc:"the process_id of the command; or name:NAME, its name; or pid:N, its number inside while it runs"`
}

type startProcess struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.StartProcess
}

func (a *API) startProcess(ctx context.Context, c *idempotency.Call, in *startProcess) (v1.Process, error) {
	var sp httpapi.Spellings
	if err := a.imageCommand(ctx, c, in.Ref, commandFields{&in.Body.ImageCommand, in.Body.Command, &in.Body.Argv, &in.Body.Cwd}); err != nil {
		return v1.Process{}, err
	}
	r, err := startRequest(&sp, &in.Body)
	if err != nil {
		return v1.Process{}, err
	}
	rec, err := a.runProcess(ctx, c, in.Ref, r)
	if err != nil {
		return v1.Process{}, sp.Rename(err)
	}
	c.KeepNothing() // its command may have a secret in it, which the record has not
	h := c.W.Header()
	h.Set(v1.ProcessHeader, rec.ID)
	h.Set("Location", "/v1/sandboxes/"+url.PathEscape(in.Ref)+"/processes/"+rec.ID)
	return processOf(rec), nil
}

// runProcess starts a process, or finds that of the same request before.
func (a *API) runProcess(ctx context.Context, c *idempotency.Call, ref string, r engine.StartRequest) (sandbox.Process, error) {
	if t, ok := c.Made(keyed.Process); ok {
		rec, began, err := a.Processes.ProcessAgain(ctx, c.Caller, t.Sandbox, t.ID)
		if began || err != nil {
			return rec, err
		}
		c.Renew()
	}
	return a.Processes.StartProcess(ctx, c.Caller, ref, r)
}

// startRequest makes the engine's request; what it shares with a command that is
// waited for is read in the same way.
func startRequest(sp *httpapi.Spellings, b *v1.StartProcess) (engine.StartRequest, error) {
	x, err := execRequest(sp, &v1.Exec{
		Command: b.Command, Argv: b.Argv, Cwd: b.Cwd, Env: b.Env, User: b.User, AsUser: b.AsUser,
		Stdin: b.Stdin, StdinBase64: b.StdinBase64, TimeoutSeconds: b.TimeoutSeconds,
		Name: b.Name, Labels: b.Labels, MergeOutput: b.MergeOutput,
		MaxOutputBytes: b.MaxOutputBytes, MaxStdoutBytes: b.MaxStdoutBytes, MaxStderrBytes: b.MaxStderrBytes,
	})
	r := engine.StartRequest{
		Shell: x.Shell, Argv: x.Argv, Cwd: x.Cwd, Env: x.Env, User: x.User, Stdin: x.Stdin, Timeout: x.Timeout,
		MaxStdout: x.MaxStdout, MaxStderr: x.MaxStderr, StreamStdin: b.StreamStdin != nil && *b.StreamStdin,
		Mark: x.Mark, MergeOutput: x.MergeOutput,
	}
	if err != nil {
		return r, err
	}
	if b.Tty != nil && *b.Tty {
		r.Terminal = &engine.TerminalSize{Cols: termSize(sp, "cols", b.Cols), Rows: termSize(sp, "rows", b.Rows), Term: httpapi.Given(b.Term)}
		return r, sp.Err()
	}
	for name, given := range map[string]bool{"cols": b.Cols != nil, "rows": b.Rows != nil, "term": b.Term != nil} {
		if given {
			sp.Add(name, "is of a terminal, and tty is not true")
		}
	}
	return r, sp.Err()
}

type listProcesses struct {
	Ref       string            `path:"id" doc:"the sandbox's id or key"`
	Status    *string           `query:"status" doc:"running: only those; the default is all"`
	Name      *string           `query:"name" doc:"only those that have, or had, this name"`
	Labels    map[string]string `query:"label.*" doc:"only those with this label: label.NAME=VALUE, once per label"`
	Limit     *int              `query:"limit" doc:"most rows of a page, 1 to 1000; default 100"`
	Cursor    *string           `query:"cursor" doc:"next_cursor of the page before"`
	SortOrder *string           `query:"sort_order" doc:"by the time of their start: asc (the default) or desc"`
}

func (a *API) listProcesses(ctx context.Context, c *idempotency.Call, in *listProcesses) (v1.ProcessList, error) {
	var sp httpapi.Spellings
	q := process.Query{Cursor: httpapi.Given(in.Cursor), Name: httpapi.Given(in.Name), Labels: in.Labels}
	if in.Limit != nil {
		if *in.Limit < 1 || *in.Limit > process.MaxPage {
			sp.Add("limit", "%d is outside 1 to %d", *in.Limit, process.MaxPage)
		}
		q.Limit = *in.Limit
	}
	if in.Status != nil {
		if *in.Status != statusRunning {
			sp.Add("status", "%q is not %q", sandbox.Clip(*in.Status, 80), statusRunning)
		}
		q.Running = true
	}
	q.Newest = in.SortOrder != nil && !query.Ascending(&sp, in.SortOrder)
	if err := sp.Err(); err != nil {
		return v1.ProcessList{}, err
	}
	return a.processPage(ctx, c, in.Ref, q)
}

// processPage is one page of a sandbox's processes.
func (a *API) processPage(ctx context.Context, c *idempotency.Call, ref string, q process.Query) (v1.ProcessList, error) {
	page, err := a.Processes.ListProcesses(ctx, c.Caller, ref, q)
	if err != nil {
		return v1.ProcessList{}, err
	}
	out := v1.ProcessList{Items: make([]v1.Process, 0, len(page.Items)), NextCursor: shape.TextOrNull(page.Next)}
	for _, r := range page.Items {
		out.Items = append(out.Items, processOf(r))
	}
	return out, nil
}

func (a *API) getProcess(ctx context.Context, c *idempotency.Call, in *byProcess) (v1.Process, error) {
	r, err := a.Processes.Process(ctx, c.Caller, in.Ref, in.ID)
	if err != nil {
		return v1.Process{}, err
	}
	return processOf(r), nil
}

type waitProcess struct {
	byProcess
	Timeout *float64 `query:"timeout" doc:"seconds to wait, 0 to 86400; default 30"`
}

const defaultWait = 30 * time.Second

func (a *API) waitProcess(ctx context.Context, c *idempotency.Call, in *waitProcess) (v1.Process, error) {
	var sp httpapi.Spellings
	wait := defaultWait
	if in.Timeout != nil {
		wait = span(&sp, "timeout", *in.Timeout)
	}
	if err := sp.Err(); err != nil {
		return v1.Process{}, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	r, err := a.Processes.WaitProcess(ctx, c.Caller, in.Ref, in.ID, wait)
	if err != nil {
		return v1.Process{}, httpapi.Cause(ctx, err)
	}
	if r.Result == nil {
		c.Status = http.StatusAccepted
	}
	return processOf(r), nil
}

type signalProcess struct {
	byProcess
	Body v1.SignalProcess
}

func (a *API) signalProcess(ctx context.Context, c *idempotency.Call, in *signalProcess) (httpapi.None, error) {
	sig, err := process.ParseSignal(in.Body.Signal)
	if err != nil {
		return httpapi.None{}, err
	}
	return httpapi.None{}, a.Processes.SignalProcess(ctx, c.Caller, in.Ref, in.ID, sig, in.Body.Tree != nil && *in.Body.Tree)
}

type resizeProcess struct {
	byProcess
	Body v1.ResizeProcess
}

func (a *API) resizeProcess(ctx context.Context, c *idempotency.Call, in *resizeProcess) (httpapi.None, error) {
	return httpapi.None{}, a.Processes.ResizeProcess(ctx, c.Caller, in.Ref, in.ID, in.Body.Cols, in.Body.Rows)
}

type writeStdin struct {
	byProcess
	Offset *int64   `query:"offset" doc:"where the body stands in the whole input, in bytes, so that what was sent and not answered can be sent again and is taken once"`
	Close  *bool    `query:"close" doc:"true: the input ends behind the body"`
	Wait   *float64 `query:"wait_seconds" doc:"how long the program may not read; default 10"`
}

func (a *API) writeStdin(ctx context.Context, c *idempotency.Call, in *writeStdin) error {
	var sp httpapi.Spellings
	r := engine.InputRequest{Offset: -1, End: in.Close != nil && *in.Close}
	if in.Offset != nil {
		if r.Offset = *in.Offset; r.Offset < 0 {
			sp.Add("offset", "%d is below 0", r.Offset)
		}
	}
	if in.Wait != nil {
		r.Wait = max(span(&sp, "wait_seconds", *in.Wait), time.Millisecond)
	}
	if err := sp.Err(); err != nil {
		return err
	}
	if c.R.ContentLength > engine.MaxInput {
		return guard.TooLarge(engine.MaxInput)
	}
	data := make([]byte, max(c.R.ContentLength, 0))
	n, err := io.ReadFull(c.R.Body, data)
	data = data[:n]
	if c.R.ContentLength < 0 { // its length is not known
		data, err = io.ReadAll(http.MaxBytesReader(nil, c.R.Body, engine.MaxInput))
	}
	if err != nil {
		if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return guard.TooLarge(tooBig.Limit)
		}
		return fault.Wrap(fault.Malformed, err, "the body ended after %d bytes, before its end", len(data))
	}
	r.Data = data
	ctx, done := c.Bound(ctx)
	defer done()
	taken, err := a.Processes.WriteInput(ctx, c.Caller, in.Ref, in.ID, r)
	if err != nil {
		return httpapi.Cause(ctx, err)
	}
	if taken.Bytes < len(data) {
		c.Status = http.StatusAccepted
	}
	return c.Answer(v1.ProcessInput{BytesTaken: taken.Bytes, TotalBytes: taken.Total, Closed: taken.Closed})
}

func (a *API) killProcesses(ctx context.Context, c *idempotency.Call, in *bySandbox) (httpapi.None, error) {
	return httpapi.None{}, a.Processes.KillAll(ctx, c.Caller, in.Ref)
}

func (a *API) killProcess(ctx context.Context, c *idempotency.Call, in *byProcess) (httpapi.None, error) {
	return httpapi.None{}, a.Processes.KillProcess(ctx, c.Caller, in.Ref, in.ID)
}

// The states of a process on the wire.
const (
	statusRunning = "running"
	statusExited  = "exited"
)

func processOf(r sandbox.Process) v1.Process {
	p := v1.Process{
		ProcessID: r.ID, Name: r.Name, Labels: r.Labels, Status: statusRunning, Command: r.Shell, Argv: r.Argv, Cwd: r.Cwd, User: r.User, Tty: r.Terminal,
		PID: r.PID, StartedAt: r.StartedAt.UTC(), LastSeq: r.LastSeq,
	}
	if res := r.Result; res != nil {
		p.Status = statusExited
		p.EndedAt, p.ExitCode = shape.TimeOrNull(res.EndedAt), new(res.ExitCode)
		p.Signal, p.Cause, p.CauseDetail = res.Signal, string(res.Cause), res.CauseDetail
		p.SignaledBy, p.SignaledWith = res.Signaled.By, res.Signaled.With
		p.TimedOut, p.DurationMS = res.Cause == sandbox.CauseTimeout, res.Duration.Milliseconds()
		p.StdoutBytes, p.StderrBytes = res.StdoutBytes, res.StderrBytes
		p.StdoutTruncated, p.StderrTruncated = res.StdoutTruncated, res.StderrTruncated
	}
	return p
}
