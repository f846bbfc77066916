// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// Exec runs a command and gives its outcome with its output, when it has ended
// or WaitSeconds passed; then Status is "running" and it goes on. A command that
// fails is no error. When ctx ends the command goes on as well: Kill ends it.
func (c *Client) Exec(ctx context.Context, ref string, r v1.Exec) (*v1.ExecResult, error) {
	out := new(v1.ExecResult)
	if _, err := c.call(ctx, request{method: "POST", path: of(ref, "/exec"), body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Frame is a piece of a command's output.
type Frame struct {
	Seq    int64 // grows within the command
	Stderr bool  // of which stream it is
	At     time.Time
	Data   []byte
}

// ExecStream runs a command and hands its output on as it comes, in order and
// exactly as it was written. An error of fn ends the stream and is given back;
// the command goes on.
func (c *Client) ExecStream(ctx context.Context, ref string, r v1.Exec, fn func(Frame) error) (*v1.ExecOutcome, error) {
	resp, err := c.do(ctx, request{
		method: "POST", path: of(ref, "/exec"), body: r,
		header: http.Header{"Accept": {"text/event-stream"}},
	})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	events := newEventReader(resp.Body)
	for {
		ev, err := events.next()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, c.unanswered(ctx, err)
		case errors.Is(err, io.EOF):
			return nil, fault.New(fault.Unavailable, "the stream broke before the command's end").
				WithRemedy("the command goes on: see the sandbox's processes")
		case err != nil:
			return nil, fault.Wrap(fault.Unavailable, err, "the stream of the command's output cannot be read").
				WithRemedy("the command goes on: see the sandbox's processes")
		}
		switch ev.name {
		case v1.StreamStdout, v1.StreamStderr:
			var out v1.Output
			if err := json.Unmarshal(ev.data, &out); err != nil {
				return nil, garbled(err)
			}
			data, err := exact(out.Data, out.DataBase64)
			if err != nil {
				return nil, garbled(err)
			}
			if err := fn(Frame{Seq: ev.id, Stderr: ev.name == v1.StreamStderr, At: out.At, Data: data}); err != nil {
				return nil, err
			}
		case v1.StreamExit:
			out := new(v1.ExecOutcome)
			if err := json.Unmarshal(ev.data, out); err != nil {
				return nil, garbled(err)
			}
			return out, nil
		case v1.StreamError:
			var p v1.Problem
			if err := json.Unmarshal(ev.data, &p); err != nil {
				return nil, garbled(err)
			}
			return nil, faultOf(&p, "")
		}
	}
}

func garbled(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the server sent an event that cannot be read")
}

// Stdout gives exactly what was kept of a command's standard output.
func Stdout(r *v1.ExecResult) ([]byte, error) { return exact(r.Stdout, r.StdoutBase64) }

// Stderr gives exactly what was kept of a command's standard error.
func Stderr(r *v1.ExecResult) ([]byte, error) { return exact(r.Stderr, r.StderrBase64) }

func exact(text, encoded string) ([]byte, error) {
	if encoded == "" {
		return []byte(text), nil
	}
	return base64.StdEncoding.DecodeString(encoded)
}

// Processes gives a sandbox's commands: those that run, and those that ended and
// are remembered.
func (c *Client) Processes(ctx context.Context, ref string) ([]v1.Process, error) {
	var out v1.ProcessList
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/processes")}, &out); err != nil {
		return nil, err
	}
	return out.Items, nil
}

// Process gives one command.
func (c *Client) Process(ctx context.Context, ref, processID string) (*v1.Process, error) {
	out := new(v1.Process)
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/processes/"+seg(processID))}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Kill ends a command and all that it started; one that has ended is no error.
func (c *Client) Kill(ctx context.Context, ref, processID string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: of(ref, "/processes/"+seg(processID))}, nil)
	return err
}
