// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Process follows one process over one connection. Next may be called by one goroutine at a time,
// concurrently with the other methods.
type Process struct {
	c    *Client
	s    *stream
	rec  sandbox.Process
	last int64    // seq of the last frame
	left [3]int64 // by Stream: bytes that may still come

	streams string // of a command in a shell, see Streams

	// Borrowed: the bytes of a frame hold until the next call of Next only. Set it before the first.
	Borrowed bool

	mu     sync.Mutex
	result *sandbox.Result
	err    error // of Next, for ever

	writeMu sync.Mutex // a frame is written in one piece
}

// Start starts a command, and returns once it runs. A program that does not exist or cannot be
// executed is not an error: that process has exited with 127 or 126, and a line on its stderr
// says why. ctx bounds the start only.
func (c *Client) Start(ctx context.Context, cmd Command) (*Process, error) {
	if err := cmd.checkText(); err != nil {
		return nil, err
	}
	s, err := c.send(ctx, &cmd, cmd.wire())
	if err != nil {
		return nil, err
	}
	return c.follow(s, cmd.ID, 0, cmd.output())
}

// send sends all that the agent needs to start a command.
func (c *Client) send(ctx context.Context, cmd *Command, st *wire.Start) (*stream, error) {
	op := wire.OpStart
	switch {
	case st.Merge:
		op = wire.OpStartMerged
	case len(st.Redact) > 0:
		op = wire.OpStartMasked
	}
	s, err := c.open(ctx, &wire.Request{Op: op, ID: cmd.ID, Start: st}, true)
	if err != nil {
		return nil, err
	}
	if err := s.sendAll(cmd.Stdin); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// Attach follows a process that was started before, from after the frame numbered after (0: from
// the first) to its end: earlier output first, then new output, each frame once and in order. A
// number that no frame had is fault.Invalid. ctx bounds the attaching only.
func (c *Client) Attach(ctx context.Context, processID string, after int64) (*Process, error) {
	return c.AttachAs(ctx, processID, Attaching{After: after})
}

// Attaching says how to follow a process that was started before.
type Attaching struct {
	After    int64 // what comes after this frame; zero: all
	Recent   int64 // of earlier output at most the last so many bytes, in whole frames; zero: all
	Lossless bool  // a lossless command waits for this follower
}

// AttachRecent is Attach that returns at most the last recent bytes of earlier output, in whole
// frames.
func (c *Client) AttachRecent(ctx context.Context, processID string, recent int64) (*Process, error) {
	return c.AttachAs(ctx, processID, Attaching{Recent: max(recent, 1)})
}

// AttachAs is Attach in another way.
func (c *Client) AttachAs(ctx context.Context, processID string, a Attaching) (*Process, error) {
	if !sandbox.ValidID(processID) {
		return nil, fault.New(fault.NotFound, "there is no process %q", sandbox.Clip(processID, 80))
	}
	s, err := c.open(ctx, &wire.Request{Op: wire.OpAttach, ID: processID, After: a.After, Recent: a.Recent, Lossless: a.Lossless}, true)
	if err != nil {
		return nil, err
	}
	return c.follow(s, processID, a.After, [3]int64{sandbox.Stdout: MaxOutput, sandbox.Stderr: MaxOutput})
}

func (c *Client) follow(s *stream, id string, after int64, left [3]int64) (*Process, error) {
	var w wire.Record
	if err := s.reply(&w); err != nil {
		s.close()
		return nil, err
	}
	rec, err := record(w, id)
	if err == nil && !s.detach() {
		err = s.ctx.Err()
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	if rec.Rolling {
		left = unbounded()
	}
	return &Process{c: c, s: s, rec: rec, last: after, left: left, streams: w.Streams}, nil
}

// sendAll sends the whole of a command's stdin.
func (s *stream) sendAll(b []byte) error {
	frame := make([]byte, 0, wire.HeaderLen+min(len(b), wire.MaxData))
	for len(b) > 0 {
		n := min(len(b), wire.MaxData)
		if err := s.send(wire.Append(frame, wire.Data, b[:n])); err != nil {
			return s.unwanted(err)
		}
		b = b[n:]
	}
	return nil
}

// unwanted returns the error of data that the agent did not accept.
func (s *stream) unwanted(err error) error {
	if errors.Is(err, ErrSilent) {
		return err
	}
	if told := s.reply(nil); told != nil { // why the agent does not want it
		return told
	}
	return s.failed(err)
}

// ID is the process's id.
func (p *Process) ID() string { return p.rec.ID }

// Record returns the process as it was when this Process began.
func (p *Process) Record() sandbox.Process { return p.rec }

// Next returns the next frame, and waits for it until ctx is done; then it may be called again,
// and nothing is lost. The error is io.EOF when the process has ended and all its output was
// returned: then Result holds. Any other error is that of the connection, or of the agent, and
// stays; the process keeps running, and Attach resumes after the last frame.
func (p *Process) Next(ctx context.Context) (sandbox.Frame, error) {
	if err := p.failed(); err != nil {
		return sandbox.Frame{}, err
	}
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = p.s.SetReadDeadline(time.Unix(1, 0))
		close(fired)
	})
	f, err := p.next()
	if !stop() {
		<-fired // the deadline must not reach the next call
		_ = p.s.SetReadDeadline(time.Time{})
	}
	if err == nil {
		return f, nil
	}
	if ctx.Err() != nil && errors.Is(err, errDeadline) {
		return sandbox.Frame{}, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	return sandbox.Frame{}, err
}

var errDeadline = errors.New("deadline")

func (p *Process) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *Process) next() (sandbox.Frame, error) {
	for {
		t, b, err := p.s.r.Next()
		if err != nil {
			if isTimeout(err) {
				return sandbox.Frame{}, errDeadline
			}
			return sandbox.Frame{}, p.s.failed(err)
		}
		switch t {
		case wire.LogStdout, wire.LogStderr:
			return p.frame(t, b)
		case wire.LogExit, wire.LogSeal:
			// Done says the same.
		case wire.Failure:
			return sandbox.Frame{}, p.s.asFault(b)
		case wire.Done:
			return sandbox.Frame{}, p.end(b)
		default:
			if !t.Ignorable() {
				return sandbox.Frame{}, p.s.broken("a frame stands among output that is none")
			}
		}
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func (p *Process) frame(t wire.Type, b []byte) (sandbox.Frame, error) {
	lf, err := wire.ParseLog(t, b)
	if err != nil {
		return sandbox.Frame{}, p.s.failed(err)
	}
	f := sandbox.Frame{Seq: lf.Seq, Stream: sandbox.Stdout, At: lf.At}
	if t == wire.LogStderr {
		f.Stream = sandbox.Stderr
	}
	p.left[f.Stream] -= int64(len(lf.Data))
	if lf.Seq <= p.last || p.left[f.Stream] < 0 || len(lf.Data) == 0 {
		return sandbox.Frame{}, p.s.broken("its frames are out of order, or more than was asked for")
	}
	p.last = lf.Seq
	if f.Data = lf.Data; !p.Borrowed {
		f.Data = append([]byte(nil), lf.Data...)
	}
	return f, nil
}

func (p *Process) end(b []byte) error {
	var w wire.Ending
	if err := wire.Decode(b, &w); err != nil {
		return p.s.broken(err.Error())
	}
	res := result(w.Result)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result = &res
	return io.EOF
}

// Result returns how the process ended. It is zero before Next has returned io.EOF.
func (p *Process) Result() sandbox.Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.result == nil {
		return sandbox.Result{}
	}
	return *p.result
}

// Write sends input to a process with a streamed stdin or a terminal. It returns when the
// connection has taken it, and so blocks while the program does not read. Input that the program
// does not read before it closes its stdin is lost.
func (p *Process) Write(b []byte) (int, error) {
	p.writeMu.Lock()
	defer p.writeMu.Unlock()
	sent := 0
	for sent < len(b) {
		n := min(len(b)-sent, wire.MaxData)
		if _, err := p.s.Write(wire.Append(nil, wire.Data, b[sent:sent+n])); err != nil {
			return sent, p.s.failed(err)
		}
		sent += n
	}
	return sent, nil
}

// WriteBy is Write that ctx ends. Then a part was sent, and the connection is of no more use for input.
func (p *Process) WriteBy(ctx context.Context, b []byte) (int, error) {
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = p.s.SetWriteDeadline(time.Unix(1, 0))
		close(fired)
	})
	n, err := p.Write(b)
	if !stop() {
		<-fired
	}
	if ctx.Err() != nil && err != nil {
		return n, ctx.Err()
	}
	return n, err
}

// CloseStdin ends a streamed stdin, after what was written. Calling it twice is fine.
func (p *Process) CloseStdin() error {
	p.writeMu.Lock()
	defer p.writeMu.Unlock()
	if _, err := p.s.Write(wire.Append(nil, wire.End, nil)); err != nil {
		return p.s.failed(err)
	}
	return nil
}

// controlPatience bounds the short calls that take no context.
const controlPatience = 10 * time.Second

// Resize sets the size of the terminal, each from 1 to 2000. A process without a terminal, or
// that has ended, is fault.State.
func (p *Process) Resize(cols, rows uint16) error {
	ctx, cancel := context.WithTimeout(context.Background(), controlPatience)
	defer cancel()
	return p.c.ask(ctx, &wire.Request{Op: wire.OpResize, ID: p.rec.ID, Cols: cols, Rows: rows}, nil)
}

// Signal sends a signal to the process itself. One that has ended is fault.State.
func (p *Process) Signal(sig syscall.Signal) error {
	ctx, cancel := context.WithTimeout(context.Background(), controlPatience)
	defer cancel()
	return p.c.Signal(ctx, p.rec.ID, sig, false)
}

// Close stops following. The process keeps running, unless it is at a terminal that this Process
// started and that is not to stay. Calling it twice is fine.
func (p *Process) Close() error {
	_ = p.s.Close() // twice fails, and means nothing
	return nil
}
