// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/code"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

type runCode struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.RunCode
}

func (a *API) runCode(ctx context.Context, c *idempotency.Call, in *runCode) error {
	var sp httpapi.Spellings
	r, err := codeRequest(&sp, &in.Body)
	if err != nil {
		return err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	if r.InterruptOnDisconnect {
		var leave context.CancelFunc
		ctx, leave = c.Attached(ctx)
		defer leave()
	}
	stream := httpapi.WantsEvents(c.R) || in.Body.Stream != nil && *in.Body.Stream
	if out, ok, err := a.codeAgain(ctx, c); err != nil {
		return httpapi.Cause(ctx, err)
	} else if ok && stream {
		return a.streamResult(c, out)
	} else if ok {
		return c.Answer(out)
	}
	if stream {
		return a.streamCode(ctx, c, in.Ref, r, &sp)
	}
	r.Room = c.Room
	res, err := a.Code.RunCode(ctx, c.Caller, in.Ref, r, nil)
	if err != nil {
		return sp.Rename(httpapi.Cause(ctx, err))
	}
	if o := codeOutputs(&res); o.large() {
		values := make([]v1.CodeValue, 0, len(res.Results))
		for _, one := range res.Results {
			values = append(values, codeValue(one))
		}
		c.Keep(c.Status, nil) // it is more than is kept
		return c.AnswerText(struct {
			v1.CodeOutcome
			Results []v1.CodeValue `json:"results"`
		}{codeOutcome(&res), values}, o...)
	}
	out := codeResult(&res)
	return c.AnswerHeld(&out) // its room is taken: a cell that has run is not answered by a refusal
}

func codeOutputs(res *code.Result) outputs {
	return outputs{{Name: "stdout", Data: res.Stdout, Cut: res.StdoutTruncated}, {Name: "stderr", Data: res.Stderr, Cut: res.StderrTruncated}}
}

func codeResult(res *code.Result) v1.CodeResult {
	out := v1.CodeResult{CodeOutcome: codeOutcome(res), Results: make([]v1.CodeValue, 0, len(res.Results))}
	out.Stdout, out.StdoutBase64 = httpapi.EncodeText(res.Stdout, res.StdoutTruncated)
	out.Stderr, out.StderrBase64 = httpapi.EncodeText(res.Stderr, res.StderrTruncated)
	for _, one := range res.Results {
		out.Results = append(out.Results, codeValue(one))
	}
	return out
}

func codeRequest(sp *httpapi.Spellings, b *v1.RunCode) (code.Request, error) {
	r := code.Request{
		Code: b.Code, Language: httpapi.Given(b.Language), ContextID: httpapi.Given(b.ContextID), Stateless: b.Stateless != nil && *b.Stateless,
		Cwd: httpapi.Given(b.Cwd), Env: b.Env, User: httpapi.Given(httpapi.Either(sp, "as_user", b.AsUser, "user", b.User)),
		InterruptOnDisconnect: b.InterruptOnDisconnect != nil && *b.InterruptOnDisconnect,
	}
	for name, s := range map[string]*string{"language": b.Language, "context_id": b.ContextID, "cwd": b.Cwd} {
		if s != nil && *s == "" {
			sp.Add(name, "is empty")
		}
	}
	if b.TimeoutSeconds != nil {
		r.Timeout = span(sp, "timeout_seconds", *b.TimeoutSeconds)
		if *b.TimeoutSeconds == 0 {
			sp.Add("timeout_seconds", "0 is not more than 0 seconds; leave it out for the default")
		}
	}
	r.MaxStdout = outputBound(sp, "max_stdout", "max_stdout_bytes", b.MaxStdoutBytes, nil)
	r.MaxStderr = outputBound(sp, "max_stderr", "max_stderr_bytes", b.MaxStderrBytes, nil)
	return r, sp.Err()
}

// streamCode sends what the code gives as it comes. A client that goes away, or stops reading,
// loses the stream.
func (a *API) streamCode(ctx context.Context, c *idempotency.Call, ref string, r code.Request, sp *httpapi.Spellings) error {
	s := c.Events()
	defer s.Close()
	keep, send := newCodeKeeper(c, r.InterruptOnDisconnect), codeSender(c, s, r.InterruptOnDisconnect)
	text := func(name string, kept *[]byte) func([]byte) error {
		return func(b []byte) error {
			keep.text(kept, b)
			out := v1.Output{At: time.Now().UTC()}
			out.Data, out.DataBase64 = httpapi.EncodeText(b, false)
			return send(name, &out)
		}
	}
	res, err := a.Code.RunCode(ctx, c.Caller, ref, r, &code.Sink{
		Started: func(st code.Start) error { return send(v1.StreamStart, codeStarted(st)) },
		Stdout:  text(v1.StreamStdout, &keep.res.Stdout),
		Stderr:  text(v1.StreamStderr, &keep.res.Stderr),
		Result: func(r kernel.Result) error {
			keep.result(r)
			return send(v1.StreamResult, codeValue(r))
		},
	})
	if err != nil {
		return s.Fail(sp.Rename(httpapi.Cause(ctx, err)))
	}
	s.End()
	if err := keep.done(c, res); err != nil {
		return err
	}
	_ = s.Send(v1.StreamEnd, 0, new(codeOutcome(&res))) // the client went away: nothing to tell
	return nil
}

func codeStarted(s code.Start) v1.CodeStarted {
	return v1.CodeStarted{ContextID: s.ContextID, CellID: s.CellID, Language: s.Language, Restarted: s.Restarted}
}

func codeOutcome(r *code.Result) v1.CodeOutcome {
	o := v1.CodeOutcome{
		CodeStarted: codeStarted(r.Start), Status: string(r.Status), ExecutionCount: r.Count, ContextEnded: r.Dead,
		ExitCode: r.ExitCode, Signal: r.Signal, Cause: string(r.Cause), CauseDetail: r.CauseDetail,
		TimedOut: r.Cause == sandbox.CauseTimeout, DurationMS: r.Duration.Milliseconds(),
		StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes,
		StdoutTruncated: r.StdoutTruncated, StderrTruncated: r.StderrTruncated, ResultsDropped: r.Dropped,
		FilesChanged: shape.Changes(r.Changes), FilesChangedTotal: r.ChangesTotal, FilesChangedComplete: r.ChangesComplete,
	}
	if e := r.Error; e != nil {
		o.Error = &v1.CodeError{Name: e.Name, Value: e.Value, Traceback: append([]string{}, e.Traceback...)}
	}
	return o
}

func codeValue(r kernel.Result) v1.CodeValue {
	out := v1.CodeValue{
		Main: r.Main, Text: r.Text, HTML: r.HTML, Markdown: r.Markdown, SVG: r.SVG, LaTeX: r.LaTeX, JavaScript: r.JavaScript,
		JSON: r.JSON, PNG: r.PNG, JPEG: r.JPEG, PDF: r.PDF, More: r.More, TextCut: r.TextCut, Omitted: r.Omitted,
		Chart: r.Chart, Data: r.Data, DataCut: r.DataCut,
	}
	if !r.At.IsZero() {
		out.At = new(r.At.UTC())
	}
	return out
}

type createContext struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.CreateContext
}

type byContext struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
	ID  string `path:"cid" doc:"the context's id"`
}

func (a *API) createContext(ctx context.Context, c *idempotency.Call, in *createContext) (v1.Context, error) {
	var sp httpapi.Spellings
	b := &in.Body
	r := code.ContextRequest{
		Language: b.Language, Cwd: httpapi.Given(b.Cwd), Env: b.Env,
		User: httpapi.Given(httpapi.Either(&sp, "as_user", b.AsUser, "user", b.User)),
	}
	if b.Cwd != nil && *b.Cwd == "" {
		sp.Add("cwd", "is empty")
	}
	if err := sp.Err(); err != nil {
		return v1.Context{}, err
	}
	cc, made, err := idempotency.Again(c, keyed.Context, a.contextBy(ctx, c, in.Ref, a.Code.Contexts), nil)
	if !made && err == nil {
		cc, err = a.Code.CreateContext(ctx, c.Caller, in.Ref, r)
	}
	if err != nil {
		return v1.Context{}, sp.Rename(err)
	}
	return contextOf(cc), nil
}

func (a *API) listContexts(ctx context.Context, c *idempotency.Call, in *byRef) (v1.ContextList, error) {
	all, err := a.Code.Contexts(ctx, c.Caller, in.Ref)
	out := v1.ContextList{Items: make([]v1.Context, 0, len(all))}
	for _, cc := range all {
		out.Items = append(out.Items, contextOf(cc))
	}
	return out, err
}

func (a *API) getContext(ctx context.Context, c *idempotency.Call, in *byContext) (v1.Context, error) {
	cc, err := a.Code.Context(ctx, c.Caller, in.Ref, in.ID)
	return contextOf(cc), err
}

func (a *API) restartContext(ctx context.Context, c *idempotency.Call, in *byContext) (v1.Context, error) {
	cc, err := a.Code.RestartContext(ctx, c.Caller, in.Ref, in.ID)
	return contextOf(cc), err
}

func (a *API) interruptContext(ctx context.Context, c *idempotency.Call, in *byContext) (httpapi.None, error) {
	return httpapi.None{}, a.Code.InterruptContext(ctx, c.Caller, in.Ref, in.ID)
}

func (a *API) deleteContext(ctx context.Context, c *idempotency.Call, in *byContext) (httpapi.None, error) {
	return httpapi.None{}, a.Code.DeleteContext(ctx, c.Caller, in.Ref, in.ID)
}

func contextOf(c code.Context) v1.Context {
	return v1.Context{
		ID: c.ID, Language: c.Language, Cwd: c.Cwd, User: c.User, Default: c.Default, Status: string(c.Status), Ended: c.Ended,
		Queued: c.Queued, Executions: c.Cells, Starts: c.Starts, ProcessID: c.ProcessID,
		CreatedAt: c.CreatedAt.UTC(), LastUsedAt: c.UsedAt.UTC(),
	}
}
