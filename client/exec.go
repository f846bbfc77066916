// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// Exec runs a command and returns its outcome and output when it has ended or WaitSeconds have
// passed; then Status is "running" and the command keeps running. A command that fails is not an
// error. The command also keeps running when ctx ends: Kill ends it.
func (c *Client) Exec(ctx context.Context, ref string, r v1.Exec) (*v1.ExecResult, error) {
	out := new(v1.ExecResult)
	if _, err := c.begin(ctx, request{method: "POST", path: of(ref, "/exec"), body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// CreateExec runs a command in a new sandbox, or in the one that has the key, in one request: as
// [Client.Create] and then [Client.Exec].
func (c *Client) CreateExec(ctx context.Context, r v1.CreateExec) (*v1.CreateExecResult, error) {
	out := new(v1.CreateExecResult)
	if _, err := c.begin(ctx, request{method: "POST", path: "/exec", body: r}, out); err != nil {
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

// ExecStream runs a command and passes its output to fn as it comes, in order and exactly as it
// was written, all of it: the command waits where fn is slow. (A server or an agent of an earlier
// build passes on as much of each stream as MaxOutputBytes says.) What is kept of it, for
// [Process.Follow] say, is the end, about as much as MaxOutputBytes says of both streams.
// StdoutTruncated and StderrTruncated say that not all was passed on. An error of fn ends the stream and is returned; the command keeps running.
func (c *Client) ExecStream(ctx context.Context, ref string, r v1.Exec, fn func(Frame) error) (*v1.ExecOutcome, error) {
	return c.ExecStarted(ctx, ref, r, func(*Process) {}, fn)
}

// ExecStarted is ExecStream that calls started with the command's process as soon as it runs,
// before any of its output, so that a caller who stops waiting can end it.
func (c *Client) ExecStarted(ctx context.Context, ref string, r v1.Exec, started func(*Process), fn func(Frame) error) (*v1.ExecOutcome, error) {
	out := new(v1.ExecOutcome)
	given, err := c.streamCommand(ctx, of(ref, "/exec"), r, func(s v1.ExecStarted) { started(c.OpenProcess(ref, s.ProcessID)) }, fn, out)
	if err != nil {
		return nil, err
	}
	given.told(out)
	return out, nil
}

// CreateExecStarted is [Client.CreateExec] that streams as [Client.ExecStarted] does; started
// also gets the sandbox's id.
func (c *Client) CreateExecStarted(ctx context.Context, r v1.CreateExec, started func(sandbox string, p *Process), fn func(Frame) error) (*v1.CreateExecOutcome, error) {
	out := new(v1.CreateExecOutcome)
	given, err := c.streamCommand(ctx, "/exec", r, func(s v1.ExecStarted) { started(s.SandboxID, c.OpenProcess(s.SandboxID, s.ProcessID)) }, fn, out)
	if err != nil {
		return nil, err
	}
	given.told(&out.ExecOutcome)
	return out, nil
}

// streamCommand runs a command, handles its events, decodes the data of the last one into out,
// and returns how much was passed on. When the connection breaks, it asks again and resumes after
// the last event that it handled.
func (c *Client) streamCommand(ctx context.Context, path string, r any, started func(v1.ExecStarted), fn func(Frame) error, out any) (passed, error) {
	s := commandStream{c: c, started: started, fn: fn}
	req := request{
		method: "POST", path: path, body: r, resume: s.resume,
		header: http.Header{"Accept": {v1.FramesType + ";" + v1.AllOutput + ", text/event-stream;data=exact"}},
	}
	err := c.repeat(ctx, req, func(resp *http.Response) error {
		var next func() (event, error)
		if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media == v1.FramesType {
			next = newFrameReader(resp.Body, c.reuse).next
		} else {
			next = newEventReader(resp.Body).next
		}
		return s.read(ctx, next)
	})
	if err != nil {
		return passed{}, err
	}
	if err := json.Unmarshal(s.last, out); err != nil {
		return passed{}, garbled(err)
	}
	return s.given, nil
}

// passed is how many bytes of standard output and standard error were passed on.
type passed [2]int64

// told has an outcome say whether all was passed on, instead of whether all is kept.
func (p passed) told(o *v1.ExecOutcome) {
	o.StdoutTruncated = o.StdoutTruncated && p[0] < o.StdoutBytes
	o.StderrTruncated = o.StderrTruncated && p[1] < o.StderrBytes
}

// commandStream is a command's events, over as many connections as it takes.
type commandStream struct {
	c       *Client
	started func(v1.ExecStarted)
	fn      func(Frame) error
	told    bool   // started was called
	given   passed // to fn, on all connections
	seq     int64  // of the last frame
	last    []byte
}

// resume asks for what comes behind the last frame.
func (s *commandStream) resume(h http.Header) {
	if s.seq > 0 {
		h.Set("Last-Event-ID", strconv.FormatInt(s.seq, 10))
	}
}

// read handles the events of one connection.
func (s *commandStream) read(ctx context.Context, next func() (event, error)) error {
	goesOn := "the command goes on: see the sandbox's processes"
	skip := s.given
	for {
		ev, err := next()
		switch {
		case err != nil && ctx.Err() != nil:
			return s.c.unanswered(ctx, err)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return lost{fault.New(fault.Unavailable, "the stream broke before the command's end").WithRemedy("%s", goesOn)}
		case err != nil:
			return lost{fault.Wrap(fault.Unavailable, err, "the stream of the command's output cannot be read").WithRemedy("%s", goesOn)}
		}
		switch ev.name {
		case v1.StreamStart:
			var at v1.ExecStarted
			if err := json.Unmarshal(ev.data, &at); err != nil {
				return garbled(err)
			}
			if at.After > 0 { // what fn was given does not come again
				skip = passed{}
			}
			goesOn = "the command goes on as process " + clip(at.ProcessID, 40) + ": attach to that"
			if !s.told {
				s.told = true
				s.started(at)
			}
		case v1.StreamStdout, v1.StreamStderr:
			if err := s.output(ev, &skip); err != nil {
				return err
			}
		case v1.StreamExit:
			s.last = bytes.Clone(ev.data)
			return nil
		case v1.StreamError:
			var p v1.Problem
			if err := json.Unmarshal(ev.data, &p); err != nil {
				return garbled(err)
			}
			if e := faultOf(&p, ""); e.Code == fault.Unavailable { // the server stops, say
				return lost{e}
			}
			return faultOf(&p, "")
		}
	}
}

// output passes on the part of an event that was not passed on before.
func (s *commandStream) output(ev event, skip *passed) error {
	data, at := ev.data, ev.at
	if at.IsZero() {
		var out v1.Output
		err := json.Unmarshal(ev.data, &out)
		if err == nil {
			data, err = exact(out.Data, out.DataBase64)
		}
		if err != nil {
			return garbled(err)
		}
		at = out.At
	}
	s.seq = max(s.seq, ev.id)
	stream := 0
	if ev.name == v1.StreamStderr {
		stream = 1
	}
	known := min(skip[stream], int64(len(data)))
	if skip[stream] -= known; known > 0 && known == int64(len(data)) {
		return nil
	}
	data = data[known:]
	s.given[stream] += int64(len(data))
	return s.fn(Frame{Seq: ev.id, Stderr: stream == 1, At: at, Data: data})
}

func garbled(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the server sent an event that cannot be read")
}

// Stdout returns exactly what was kept of a command's standard output.
func Stdout(r *v1.ExecResult) ([]byte, error) { return exact(r.Stdout, r.StdoutBase64) }

// Stderr returns exactly what was kept of a command's standard error.
func Stderr(r *v1.ExecResult) ([]byte, error) { return exact(r.Stderr, r.StderrBase64) }

func exact(text, encoded string) ([]byte, error) {
	if encoded == "" {
		return []byte(text), nil
	}
	return base64.StdEncoding.DecodeString(encoded)
}

// Processes returns a sandbox's commands: those that run, and those that ended and are still on
// record.
func (c *Client) Processes(ctx context.Context, ref string) ([]v1.Process, error) {
	var out []v1.Process
	for p, err := range c.ListProcesses(ctx, ref, ProcessQuery{}) {
		if err != nil {
			return nil, err
		}
		out = append(out, *p)
	}
	return out, nil
}

// Process returns one command.
func (c *Client) Process(ctx context.Context, ref, processID string) (*v1.Process, error) {
	out := new(v1.Process)
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/processes/"+seg(processID))}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Kill ends a command and every process that it started. Killing one that has ended is not an
// error.
func (c *Client) Kill(ctx context.Context, ref, processID string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: of(ref, "/processes/"+seg(processID))}, nil)
	return err
}

// KillAll ends all that runs in a sandbox, also what commands that have ended left running. Files
// stay. It works where the sandbox's limit of processes is reached.
func (c *Client) KillAll(ctx context.Context, ref string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: of(ref, "/processes")}, nil)
	return err
}
