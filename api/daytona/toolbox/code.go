// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/code"
	"sandpit.dev/fault"
	"sandpit.dev/kernel"
)

// codeOperations returns the operations that run code.
func (a *API) codeOperations() []httpapi.Operation {
	return []httpapi.Operation{
		op("toolboxCodeRun", "POST /process/code-run", http.StatusOK, noCode, a.codeRun).MaxBody(maxCommand),
		op("toolboxCreateContext", "POST /process/interpreter/context", http.StatusOK, noCode, a.createContext),
		op("toolboxListContexts", "GET /process/interpreter/context", http.StatusOK, noCode, a.listContexts),
		op("toolboxDeleteContext", "DELETE /process/interpreter/context/{context}", http.StatusOK, noCode, a.deleteContext),
		httpapi.Raw("toolboxInterpret", "GET /process/interpreter/execute", "", http.StatusSwitchingProtocols, a.interpret).ReadsContent(),
	}
}

type codeRun struct {
	Ref  string `path:"id"`
	Body wire.RunCode
}

// codeRun runs code in a kernel of its own. The result is its output and, where it failed, the traceback.
func (a *API) codeRun(ctx context.Context, c *httpapi.Call, in *codeRun) (wire.CodeRan, error) {
	b := &in.Body
	limit, err := a.limit(b.Timeout)
	if err != nil {
		return wire.CodeRan{}, err
	}
	r := code.Request{
		Code: b.Code, Language: cmp.Or(httpapi.Given(b.Language), "python"), Stateless: true, Env: b.Envs, Argv: b.Argv, Timeout: limit,
		MaxStdout: maxOutput / 2, MaxStderr: maxOutput / 2, InterruptOnDisconnect: true, Room: c.Room,
	}
	res, err := a.Code.RunCode(ctx, c.Caller, in.Ref, r, nil)
	if err != nil {
		return wire.CodeRan{}, err
	}
	if res.Status == code.TimedOut {
		return wire.CodeRan{}, timedOut(limit)
	}
	out := wire.CodeRan{ExitCode: res.ExitCode, Result: string(res.Stdout) + string(res.Stderr)}
	if e := res.Error; e != nil {
		var text string
		out.ExitCode, text = ending(e, out.ExitCode)
		out.Result += text
	}
	if res.StdoutTruncated || res.StderrTruncated {
		out.Result += fmt.Sprintf("\n[only the first %d of %d bytes are shown]", len(res.Stdout)+len(res.Stderr), res.StdoutBytes+res.StderrBytes)
	}
	out.Artifacts = artifacts(res.Results)
	return out, nil
}

// ending returns the exit code of code that ended with an error, and what a program would have printed. An exit by sys.exit is not a
// failure.
func ending(e *kernel.Error, failed int) (exit int, text string) {
	if e.Name != "SystemExit" {
		return failed, traceback(e)
	}
	if e.Value == "" {
		return 0, ""
	}
	n, err := strconv.ParseInt(e.Value, 10, 64)
	if err != nil {
		return 1, e.Value + "\n"
	}
	return int(n & 0xff), ""
}

func traceback(e *kernel.Error) string {
	if len(e.Traceback) > 0 {
		return strings.Join(e.Traceback, "\n") + "\n"
	}
	return e.Name + ": " + e.Value + "\n"
}

// artifacts returns the figures among results; nil if there are none.
func artifacts(all []kernel.Result) *wire.Artifacts {
	var charts []json.RawMessage
	for _, r := range all {
		if r.PNG == nil && r.Chart == nil {
			continue
		}
		chart := make(map[string]any)
		if json.Unmarshal(r.Chart, &chart) != nil || chart["type"] == nil {
			chart = map[string]any{"type": "unknown", "title": "", "elements": []any{}}
		}
		toModels(chart)
		chart["png"] = base64.StdEncoding.EncodeToString(r.PNG)
		if b, err := json.Marshal(chart); err == nil {
			charts = append(charts, b)
		}
	}
	if charts == nil {
		return nil
	}
	return &wire.Artifacts{Charts: charts}
}

func contextOf(x *code.Context) wire.Context {
	return wire.Context{ID: x.ID, Cwd: x.Cwd, Language: x.Language, Active: x.Status != code.ContextEnded, CreatedAt: x.CreatedAt.UTC()}
}

type createContext struct {
	Ref  string `path:"id"`
	Body wire.CreateContext
}

func (a *API) createContext(ctx context.Context, c *httpapi.Call, in *createContext) (wire.Context, error) {
	x, err := a.Code.CreateContext(ctx, c.Caller, in.Ref, code.ContextRequest{Language: cmp.Or(httpapi.Given(in.Body.Language), "python"), Cwd: httpapi.Given(in.Body.Cwd)})
	if err != nil {
		return wire.Context{}, err
	}
	return contextOf(&x), nil
}

func (a *API) listContexts(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Contexts, error) {
	all, err := a.Code.Contexts(ctx, c.Caller, in.Ref)
	out := wire.Contexts{Contexts: make([]wire.Context, len(all))}
	for i := range all {
		out.Contexts[i] = contextOf(&all[i])
	}
	return out, err
}

type deleteContext struct {
	Ref     string `path:"id"`
	Context string `path:"context"`
}

func (a *API) deleteContext(ctx context.Context, c *httpapi.Call, in *deleteContext) (wire.Nothing, error) {
	return wire.Nothing{}, a.Code.DeleteContext(ctx, c.Caller, in.Ref, in.Context)
}

// timeoutClosed is the close code of a socket whose code was interrupted at its time limit.
const timeoutClosed = websocket.StatusCode(4008)

// interpret runs the code of one message, and sends its output as it is written.
func (a *API) interpret(ctx context.Context, c *httpapi.Call, in *byRef) error {
	if err := needSocket(c.R); err != nil {
		return err
	}
	c.UpgradeAs(ctx, maxCommand, offered(c.R), func(ctx context.Context, conn *websocket.Conn) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		steady := context.WithoutCancel(ctx)
		_, text, err := conn.Read(ctx)
		if err != nil {
			return
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			defer cancel() // who goes away has it interrupted
			for {
				if _, _, err := conn.Read(steady); err != nil {
					return
				}
			}
		}()
		status, reason := a.interpreted(ctx, c, conn, in.Ref, text)
		_ = conn.Close(status, reason)
		_ = conn.CloseNow()
		<-gone
	})
	return nil
}

// interpreted runs it, and returns the close code and reason of the socket.
func (a *API) interpreted(ctx context.Context, c *httpapi.Call, conn *websocket.Conn, ref string, text []byte) (websocket.StatusCode, string) {
	steady := context.WithoutCancel(ctx)
	tell := func(m wire.Interpreted) error {
		b, err := json.Marshal(m)
		if err != nil {
			return err
		}
		return write(steady, conn, websocket.MessageText, b, c.Stall())
	}
	fail := func(err error) (websocket.StatusCode, string) {
		e := fault.As(err)
		_ = tell(wire.Interpreted{Type: "error", Name: "SandboxError", Value: e.Message + "; " + e.Remedy})
		return websocket.StatusNormalClosure, ""
	}
	var m wire.Interpret
	if err := json.Unmarshal(text, &m); err != nil {
		return fail(fault.New(fault.Malformed, "the message is not a JSON object with code: %v", err))
	}
	limit, err := a.limit(m.Timeout)
	if err != nil {
		return fail(err)
	}
	out := func(kind string) func([]byte) error {
		return func(b []byte) error { return tell(wire.Interpreted{Type: kind, Text: string(b)}) }
	}
	r := code.Request{Code: m.Code, ContextID: m.ContextID, Env: m.Envs, Timeout: limit, InterruptOnDisconnect: true}
	if r.ContextID == "" {
		r.Language = "python"
	}
	res, err := a.Code.RunCode(ctx, c.Caller, ref, r, &code.Sink{Stdout: out("stdout"), Stderr: out("stderr"), Result: func(v kernel.Result) error {
		if !v.Main || v.Text == "" {
			return nil
		}
		return tell(wire.Interpreted{Type: "stdout", Text: v.Text + "\n"})
	}})
	switch {
	case err != nil:
		return fail(httpapi.Cause(ctx, err))
	case res.Status == code.TimedOut:
		_ = tell(wire.Interpreted{Type: "control", Text: "interrupted"})
		return timeoutClosed, "execution timeout after " + limit.Round(time.Millisecond).String()
	case res.Error != nil:
		_ = tell(wire.Interpreted{Type: "error", Name: res.Error.Name, Value: res.Error.Value, Traceback: strings.Join(res.Error.Traceback, "\n")})
	}
	last := "completed"
	if res.Status == code.Interrupted {
		last = "interrupted"
	}
	_ = tell(wire.Interpreted{Type: "control", Text: last})
	return websocket.StatusNormalClosure, ""
}
