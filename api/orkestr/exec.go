// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

const (
	maxCommand     = 16 << 20 // bytes of a request with a command line or code
	maxOutput      = 16 << 20 // bytes of each stream that an answer has
	defaultTimeout = time.Minute
)

type exec struct {
	ID   string `path:"id"`
	Body struct {
		Command string            `json:"command"`
		Cwd     string            `json:"cwd"`
		Env     map[string]string `json:"env"`
		Timeout *float64          `json:"timeout_seconds"`
		Stream  bool              `json:"stream"`
	}
}

type execResult struct {
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	ExitCode int    `json:"exit_code"`
	Millis   int64  `json:"duration_ms"`
}

// Frames of streams, by their kinds.
const (
	kindStarted = "exec_started"
	kindChunk   = "exec_chunk"
	kindExited  = "exec_exited"
	kindError   = "error"
)

type startedFrame struct {
	Kind string `json:"kind"`
	PID  *int   `json:"pid"` // null: it is not known yet
}

type chunkFrame struct {
	Kind   string `json:"kind"`
	Stream string `json:"stream"`
	Data   []byte `json:"data"` // base64
}

type exitedFrame struct {
	Kind   string `json:"kind"`
	Code   int    `json:"code"`
	Millis int64  `json:"duration_ms"`
}

type errorFrame struct {
	Kind    string `json:"kind"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Signal  int    `json:"signal,omitempty"`
}

// limit reads a time limit of a command.
func (a *API) limit(seconds *float64) (time.Duration, error) {
	most := a.Server.MostCommandTime()
	if seconds == nil {
		return min(defaultTimeout, most), nil
	}
	if s := *seconds; !(s > 0 && s <= most.Seconds()) {
		return 0, fault.InvalidField("timeout_seconds", "%v is not more than 0 and at most %v", s, most.Seconds())
	}
	return time.Duration(*seconds * float64(time.Second)), nil
}

func (a *API) exec(ctx context.Context, c *httpapi.Call, in *exec) error {
	b := &in.Body
	if strings.TrimSpace(b.Command) == "" {
		return fault.InvalidField("command", "is empty")
	}
	limit, err := a.limit(b.Timeout)
	if err != nil {
		return err
	}
	r := engine.ExecRequest{Shell: b.Command, Cwd: b.Cwd, Env: b.Env, Timeout: limit, MaxStdout: maxOutput, MaxStderr: maxOutput, Room: c.Room}
	ctx, done := c.Bound(ctx)
	defer done()
	if b.Stream {
		return a.stream(ctx, c, in.ID, r)
	}
	res, err := a.Commands.Exec(ctx, c.Caller, in.ID, r, nil)
	if err != nil {
		return httpapi.Cause(ctx, err)
	}
	if err := ended(&res.Result, limit); err != nil {
		return err
	}
	return c.Answer(execResult{textOf(res.Stdout, res.StdoutTruncated), textOf(res.Stderr, res.StderrTruncated), res.ExitCode, res.Duration.Milliseconds()})
}

// ended returns the error of a command that did not exit by itself.
func ended(res *sandbox.Result, limit time.Duration) error {
	switch {
	case res.Cause == sandbox.CauseTimeout:
		return coded(codeTimeout, http.StatusRequestTimeout, fault.New(fault.Timeout, "the command was ended after %v", limit).WithRemedy("give it a longer timeout_seconds, or run it with background=True"))
	case res.Signal != "":
		why := ""
		if res.CauseDetail != "" {
			why = ": " + res.CauseDetail
		}
		err := fault.New(fault.State, "the command was ended by %s%s", res.Signal, why)
		return codedError{error: err, code: codeKilled, signal: unix.SignalNum(res.Signal)}
	}
	return nil
}

// stream streams a command's output as it runs. A client that goes away loses the stream: the command goes on to its time limit.
func (a *API) stream(ctx context.Context, c *httpapi.Call, ref string, r engine.ExecRequest) error {
	s := c.Events()
	defer s.Close()
	r.Started = func(string) { _ = s.Send(kindStarted, 0, startedFrame{Kind: kindStarted}) } // a client that went away is seen by the next frame
	res, err := a.Commands.Exec(ctx, c.Caller, ref, r, func(f sandbox.Frame) error { return s.Send(kindChunk, 0, chunkOf(f)) })
	if err == nil {
		err = ended(&res.Result, r.Timeout)
	}
	if err != nil {
		return s.Fail(httpapi.Cause(ctx, err))
	}
	s.End()
	_ = s.Send(kindExited, 0, exitedFrame{kindExited, res.ExitCode, res.Duration.Milliseconds()}) // the client went away: nothing to tell
	return nil
}

func chunkOf(f sandbox.Frame) chunkFrame {
	name := "stdout"
	if f.Stream == sandbox.Stderr {
		name = "stderr"
	}
	return chunkFrame{kindChunk, name, f.Data}
}

// textOf is output as text: bytes that are no UTF-8 are replaced, and what is left out is said.
func textOf(b []byte, cut bool) string {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	if cut {
		s += fmt.Sprintf("\n[only the first %d bytes are shown]", len(b))
	}
	return s
}
