// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

type execInput struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.Exec
}

func (a *API) exec(ctx context.Context, c *idempotency.Call, in *execInput) error {
	var sp httpapi.Spellings
	if err := a.imageCommand(ctx, c, in.Ref, commandFields{&in.Body.ImageCommand, in.Body.Command, &in.Body.Argv, &in.Body.Cwd}); err != nil {
		return err
	}
	r, err := execRequest(&sp, &in.Body)
	if err != nil {
		return err
	}
	if err := mayStreamInput(c, &in.Body); err != nil {
		return err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	if wantsStream(c) {
		return a.streamExec(ctx, c, in.Ref, r, &sp)
	}
	r.Started = func(id string) { c.W.Header().Set(v1.ProcessHeader, id) }
	r.Room = c.Room
	res, err := a.runExec(ctx, c, in.Ref, r, nil)
	if err != nil {
		return sp.Rename(httpapi.Cause(ctx, err))
	}
	goesOn(c, in.Ref, &res)
	kept := outcomeOf(&res)
	if err := complete(c, &kept, &kept); err != nil {
		return err
	}
	if o := outputsOf(&res); o.large() {
		return c.AnswerText(&kept, o...)
	}
	out := resultOf(&kept, &res)
	return c.AnswerHeld(&out)
}

// runExec runs a command, or goes on with that of the same request before.
func (a *API) runExec(ctx context.Context, c *idempotency.Call, ref string, r engine.ExecRequest, sink func(sandbox.Frame) error) (engine.ExecResult, error) {
	if t, ok := c.Made(keyed.Process); ok {
		res, began, err := a.Commands.ExecAgain(ctx, c.Caller, t.Sandbox, t.ID, r, sink)
		if began || err != nil {
			return res, err
		}
		c.Renew()
	}
	return a.Commands.Exec(ctx, c.Caller, ref, r, sink)
}

// complete has the outcome of a command kept, without its output. Where one is kept already
// it is that, into which what was read again goes.
func complete(c *idempotency.Call, o *v1.ExecOutcome, whole any) error {
	switch {
	case !c.Keyed():
		return nil
	case o.Status == statusRunning:
		c.KeepNothing()
		return nil
	}
	if answer := c.KeptAnswer(); answer != nil {
		cutOut, cutErr := o.StdoutTruncated, o.StderrTruncated // of what was read again
		if err := json.Unmarshal(answer, whole); err != nil {
			return fault.Wrap(fault.Internal, err, "the answer that was kept cannot be read")
		}
		o.StdoutTruncated, o.StderrTruncated = o.StdoutTruncated || cutOut, o.StderrTruncated || cutErr
		c.KeepNothing()
		return nil
	}
	return c.KeepAs(whole)
}

// goesOn gives the answer about a command that goes on its status, and the place where the
// command is asked after.
func goesOn(c *idempotency.Call, ref string, res *engine.ExecResult) {
	if res.Running {
		c.Status = http.StatusAccepted
		c.W.Header().Set("Location", "/v1/sandboxes/"+url.PathEscape(ref)+"/processes/"+res.ProcessID)
	}
}

// resultOf is a command's outcome with its output.
func resultOf(o *v1.ExecOutcome, res *engine.ExecResult) v1.ExecResult {
	out := v1.ExecResult{ExecOutcome: *o}
	out.Stdout, out.StdoutBase64 = httpapi.EncodeText(res.Stdout, res.StdoutTruncated)
	out.Stderr, out.StderrBase64 = httpapi.EncodeText(res.Stderr, res.StderrTruncated)
	return out
}

// outputs are the streams of a command, standard output first.
type outputs []httpapi.Text

func outputsOf(res *engine.ExecResult) outputs {
	return outputs{{Name: "stdout", Data: res.Stdout, Cut: res.StdoutTruncated}, {Name: "stderr", Data: res.Stderr, Cut: res.StderrTruncated}}
}

// large reports whether the outputs may not be copied for an answer that is built whole.
func (o outputs) large() bool { return len(o[0].Data)+len(o[1].Data) > httpapi.FreeAnswer }

// execRequest makes the engine's request. Zero means "the default" to the
// engine; on the wire it is refused, but for wait_seconds, where it means not to
// wait at all.
func execRequest(sp *httpapi.Spellings, b *v1.Exec) (engine.ExecRequest, error) {
	r := engine.ExecRequest{
		Shell: httpapi.Given(b.Command), Argv: b.Argv, Cwd: httpapi.Given(b.Cwd), Env: b.Env,
		User: httpapi.Given(httpapi.Either(sp, "as_user", b.AsUser, "user", b.User)),
	}
	if b.ImageCommand != nil && *b.ImageCommand {
		sp.Add("image_command", "is for a command in a sandbox that is there, outside of shells; make the sandbox first")
		return r, sp.Err()
	}
	switch {
	case b.Command == nil && b.Argv == nil:
		sp.Add("command", "is missing; send shell text as command, or a program with its arguments as argv")
	case b.Command != nil && b.Argv != nil:
		sp.Add("command", "and argv are both given; send one of them")
		sp.Add("argv", "and command are both given; send one of them")
	case b.Command != nil && strings.TrimSpace(*b.Command) == "":
		sp.Add("command", "is empty")
	case b.Command == nil && len(b.Argv) == 0:
		sp.Add("argv", "is empty")
	case b.Command == nil:
		sp.Wrote("command", "argv")
	}
	if b.Cwd != nil && *b.Cwd == "" {
		sp.Add("cwd", "is empty")
	}
	if b.Name != nil && *b.Name == "" {
		sp.Add("name", "is empty; leave it out for none")
	}
	r.Mark = process.Mark{Name: httpapi.Given(b.Name), Labels: b.Labels}
	r.MergeOutput = b.MergeOutput != nil && *b.MergeOutput
	r.Stdin = stdin(sp, b)
	r.StreamStdin = b.StreamStdin != nil && *b.StreamStdin
	if b.TimeoutSeconds != nil {
		r.Timeout = span(sp, "timeout_seconds", *b.TimeoutSeconds)
		if *b.TimeoutSeconds == 0 {
			sp.Add("timeout_seconds", "0 is not more than 0 seconds; leave it out for the default")
		}
	}
	if b.WaitSeconds != nil {
		r.Wait = max(span(sp, "wait_seconds", *b.WaitSeconds), 1)
	}
	r.MaxStdout = outputBound(sp, "max_stdout", "max_stdout_bytes", b.MaxStdoutBytes, b.MaxOutputBytes)
	r.MaxStderr = outputBound(sp, "max_stderr", "max_stderr_bytes", b.MaxStderrBytes, b.MaxOutputBytes)
	return r, sp.Err()
}

// mayStreamInput refuses a streamed standard input to a caller who is told which process it is
// for when that is over.
func mayStreamInput(c *idempotency.Call, b *v1.Exec) error {
	if b.StreamStdin == nil || !*b.StreamStdin || b.WaitSeconds != nil || wantsStream(c) {
		return nil
	}
	return fault.InvalidField("stream_stdin", "is true, and the answer would name the process only at its end").
		WithRemedy("ask for a stream with the header Accept: text/event-stream, or set wait_seconds, to 0 for an answer at once")
}

func stdin(sp *httpapi.Spellings, b *v1.Exec) []byte {
	switch {
	case b.Stdin != nil && b.StdinBase64 != nil:
		sp.Add("stdin", "and stdin_base64 are both given; send one of them")
		sp.Add("stdin_base64", "and stdin are both given; send one of them")
	case b.Stdin != nil:
		return []byte(*b.Stdin)
	case b.StdinBase64 != nil:
		data, err := base64.StdEncoding.DecodeString(*b.StdinBase64)
		if err != nil {
			sp.Add("stdin_base64", "is not base64: %v", err)
		}
		return data
	}
	return nil
}

// span reads a number of seconds up to the longest that a command may take.
func span(sp *httpapi.Spellings, name string, seconds float64) time.Duration {
	if most := engine.MaxCommandTimeout.Seconds(); math.IsNaN(seconds) || seconds < 0 || seconds > most {
		sp.Add(name, "%s is outside 0 to %.0f seconds", sandbox.Clip(strconv.FormatFloat(seconds, 'f', -1, 64), 40), most)
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// outputBound reads the bound of one stream, which may be given for both. The
// engine knows it under the name of stream.
func outputBound(sp *httpapi.Spellings, stream, name string, own, both *int64) int64 {
	if own == nil {
		name, own = "max_output_bytes", both
	}
	if own == nil {
		return 0
	}
	sp.Wrote(stream, name)
	if *own < 1 && !sp.Has(name) {
		sp.Add(name, "%d is less than 1 byte", *own)
	}
	return *own
}

func outcomeOf(r *engine.ExecResult) v1.ExecOutcome {
	o := v1.ExecOutcome{
		ProcessID: r.ProcessID, Status: "exited", Signal: r.Signal, Cause: string(r.Cause), CauseDetail: r.CauseDetail,
		SignaledBy: r.Signaled.By, SignaledWith: r.Signaled.With,
		TimedOut: r.Cause == sandbox.CauseTimeout, DurationMS: r.Duration.Milliseconds(),
		StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes,
		StdoutTruncated: r.StdoutTruncated, StderrTruncated: r.StderrTruncated,
		FilesChanged: shape.Changes(r.Changes), FilesChangedTotal: r.ChangesTotal, FilesChangedComplete: r.ChangesComplete,
		SnapshotID: string(r.SnapshotID),
	}
	if r.Running {
		o.Status = "running"
	} else {
		o.ExitCode = new(r.ExitCode)
	}
	return o
}
