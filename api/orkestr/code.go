// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/code"
	"sandpit.dev/fault"
	"sandpit.dev/kernel"
)

type runCode struct {
	ID   string `path:"id"`
	Body struct {
		Code     string   `json:"code"`
		Language string   `json:"language"`
		Context  *string  `json:"context_id"`
		Timeout  *float64 `json:"timeout_seconds"`
		Stream   bool     `json:"stream"`
	}
}

// codeShape is what became of code.
type codeShape struct {
	Results []codeResult `json:"results"`
	Stdout  string       `json:"stdout"`
	Stderr  string       `json:"stderr"`
	codeEnd
}

// codeEnd is what is known when code has ended.
type codeEnd struct {
	Error       *codeFailure `json:"error"`
	Count       int          `json:"execution_count"`
	Context     string       `json:"context_id"`
	Millis      int64        `json:"duration_ms"`
	Interrupted bool         `json:"interrupted"`
	Restarted   bool         `json:"restarted"`
	Truncated   []string     `json:"truncated"`
}

type codeFailure struct {
	Name      string   `json:"name"`
	Value     string   `json:"value"`
	Traceback []string `json:"traceback"`
}

type codeResult struct {
	Type  string          `json:"type"` // the richest form
	Text  *string         `json:"text"`
	HTML  *string         `json:"html"`
	PNG   []byte          `json:"png"` // base64
	JSON  json.RawMessage `json:"json"`
	Chart json.RawMessage `json:"chart"`
}

func resultOf(r kernel.Result) codeResult {
	out := codeResult{Type: "text", PNG: r.PNG, JSON: r.JSON, Chart: r.Chart}
	if r.Text != "" {
		out.Text = &r.Text
	}
	if r.HTML != "" {
		out.HTML = &r.HTML
	}
	switch {
	case r.Chart != nil:
		out.Type = "chart"
	case r.PNG != nil:
		out.Type = "image_png"
	case r.HTML != "":
		out.Type = "html"
	case r.JSON != nil:
		out.Type = "json"
	}
	return out
}

func endOf(res *code.Result) codeEnd {
	out := codeEnd{
		Count: res.Count, Context: res.ContextID, Millis: res.Duration.Milliseconds(), Interrupted: res.Status == code.TimedOut || res.Status == code.Interrupted,
		Restarted: res.Restarted != "", Truncated: []string{}, Error: failureOf(res.Error),
	}
	for name, cut := range map[string]bool{"stdout": res.StdoutTruncated, "stderr": res.StderrTruncated, "results": res.Dropped > 0} {
		if cut {
			out.Truncated = append(out.Truncated, name)
		}
	}
	out.Truncated = names(out.Truncated)
	if res.Status == code.Ended && out.Error == nil {
		out.Error = &codeFailure{Name: "KernelDied", Value: "the kernel ended while the code ran; " + string(res.Cause), Traceback: []string{}}
	}
	return out
}

func failureOf(e *kernel.Error) *codeFailure {
	if e == nil {
		return nil
	}
	return &codeFailure{e.Name, e.Value, append([]string{}, e.Traceback...)}
}

// Frames of code, by their kinds.
const (
	kindStream = "stream"
	kindResult = "result"
	kindDone   = "done"
)

type textFrame struct {
	Kind   string `json:"kind"`
	Stream string `json:"stream"`
	Text   string `json:"text"`
}

type resultFrame struct {
	Kind   string     `json:"kind"`
	Result codeResult `json:"result"`
}

type failureFrame struct {
	Kind  string       `json:"kind"`
	Error *codeFailure `json:"error"`
	Code  string       `json:"error_code,omitempty"` // that it is no failure of the code's
}

type doneFrame struct {
	Kind string `json:"kind"`
	codeEnd
}

func (a *API) runCode(ctx context.Context, c *httpapi.Call, in *runCode) error {
	b := &in.Body
	limit, err := a.limit(b.Timeout)
	if err != nil {
		return err
	}
	r := code.Request{Code: b.Code, Language: b.Language, ContextID: httpapi.Given(b.Context), Timeout: limit, MaxStdout: maxOutput, MaxStderr: maxOutput, Room: c.Room}
	if r.ContextID != "" {
		r.Language = "" // the context has its own
	}
	ctx, done := c.Bound(ctx)
	defer done()
	if b.Stream {
		return a.streamCode(ctx, c, in.ID, r)
	}
	res, err := a.Code.RunCode(ctx, c.Caller, in.ID, r, nil)
	if err != nil {
		return noInterpreter(httpapi.Cause(ctx, err))
	}
	out := codeShape{Results: []codeResult{}, Stdout: textOf(res.Stdout, res.StdoutTruncated), Stderr: textOf(res.Stderr, res.StderrTruncated), codeEnd: endOf(&res)}
	for _, one := range res.Results {
		out.Results = append(out.Results, resultOf(one))
	}
	return c.Answer(out)
}

// noInterpreter returns the error of an image without the language with the code that the SDK has an exception for.
func noInterpreter(err error) error {
	if fault.Is(err, fault.Unsupported) {
		return coded(codeNoInterpreter, http.StatusUnprocessableEntity, err)
	}
	return err
}

// streamCode streams what code writes and shows as it runs.
func (a *API) streamCode(ctx context.Context, c *httpapi.Call, ref string, r code.Request) error {
	s := c.Events()
	defer s.Close()
	text := func(name string) func([]byte) error {
		return func(b []byte) error { return s.Send(kindStream, 0, textFrame{kindStream, name, textOf(b, false)}) }
	}
	res, err := a.Code.RunCode(ctx, c.Caller, ref, r, &code.Sink{
		Stdout: text("stdout"), Stderr: text("stderr"),
		Result: func(one kernel.Result) error { return s.Send(kindResult, 0, resultFrame{kindResult, resultOf(one)}) },
	})
	if err != nil {
		err = noInterpreter(httpapi.Cause(ctx, err))
		if !s.End() {
			return err
		}
		e := fault.As(err)
		_ = s.Send(kindError, 0, failureFrame{kindError, &codeFailure{Name: string(e.Code), Value: e.Message, Traceback: []string{}}, string(e.Code)}) // the client went away: nothing to tell
		return nil
	}
	s.End()
	end := endOf(&res)
	if end.Error != nil {
		_ = s.Send(kindError, 0, failureFrame{Kind: kindError, Error: end.Error})
	}
	_ = s.Send(kindDone, 0, doneFrame{kindDone, end})
	return nil
}

type createContext struct {
	ID   string `path:"id"`
	Body struct {
		Cwd      *string `json:"cwd"`
		Language string  `json:"language"`
	}
}

type contextShape struct {
	ID        string    `json:"context_id"`
	Language  string    `json:"language"`
	Cwd       string    `json:"cwd"`
	CreatedAt time.Time `json:"created_at"`
	UsedAt    time.Time `json:"last_used_at"`
	Count     int64     `json:"executions"`
	Alive     bool      `json:"alive"`
}

func contextOf(x *code.Context) contextShape {
	return contextShape{x.ID, x.Language, x.Cwd, x.CreatedAt.UTC(), x.UsedAt.UTC(), x.Cells, x.Status != code.ContextEnded}
}

func (a *API) createContext(ctx context.Context, c *httpapi.Call, in *createContext) (contextShape, error) {
	r := code.ContextRequest{Language: string(kernel.Python), Cwd: httpapi.Given(in.Body.Cwd)}
	if in.Body.Language != "" {
		r.Language = in.Body.Language
	}
	ctx, done := c.Bound(ctx)
	defer done()
	x, err := a.Code.CreateContext(ctx, c.Caller, in.ID, r)
	if err != nil {
		return contextShape{}, noInterpreter(httpapi.Cause(ctx, err))
	}
	return contextOf(&x), nil
}

type contextList struct {
	Contexts []contextShape `json:"contexts"`
}

func (a *API) listContexts(ctx context.Context, c *httpapi.Call, in *byRef) (contextList, error) {
	all, err := a.Code.Contexts(ctx, c.Caller, in.ID)
	out := contextList{Contexts: make([]contextShape, len(all))}
	for i := range all {
		out.Contexts[i] = contextOf(&all[i])
	}
	return out, err
}

type byContext struct {
	ID      string `path:"id"`
	Context string `path:"context"`
}

func (a *API) restartContext(ctx context.Context, c *httpapi.Call, in *byContext) (contextShape, error) {
	ctx, done := c.Bound(ctx)
	defer done()
	x, err := a.Code.RestartContext(ctx, c.Caller, in.ID, in.Context)
	return contextOf(&x), httpapi.Cause(ctx, err)
}

func (a *API) deleteContext(ctx context.Context, c *httpapi.Call, in *byContext) (httpapi.None, error) {
	ctx, done := c.Bound(ctx)
	defer done()
	return httpapi.None{}, httpapi.Cause(ctx, a.Code.DeleteContext(ctx, c.Caller, in.ID, in.Context))
}
