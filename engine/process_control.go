// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"syscall"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/command"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// WaitProcess waits until a process has ended, or at most as long as wait, and gives
// its record; Result is nil if it goes on. Zero does not wait.
func (e *Engine) WaitProcess(ctx context.Context, c access.Caller, ref, processID string, wait time.Duration) (sandbox.Process, error) {
	var k check.Fields
	k.Timeout("timeout", wait, MaxCommandTimeout)
	if err := k.Err(); err != nil {
		return sandbox.Process{}, err
	}
	processID, err := e.processID(ctx, c, ref, processID)
	if err != nil {
		return sandbox.Process{}, err
	}
	rec, err := e.Process(ctx, c, ref, processID)
	if err != nil || rec.Result != nil || wait == 0 {
		return rec, err
	}
	u, err := e.peek(ctx, c, access.SandboxesRead, ref)
	if fault.Is(err, fault.State) { // it goes down, and the row is about to say how the process ended
		return e.awaitRow(ctx, c, ref, processID, wait)
	}
	if err != nil {
		return sandbox.Process{}, err
	}
	defer u.End()
	bound, leave := e.group.Bind(ctx)
	defer leave()
	here, cancel := context.WithTimeout(bound, wait)
	defer cancel()
	f := newFollower(u, &sandbox.Event{ProcessID: processID, At: rec.StartedAt}, 0)
	f.guest = true
	defer f.hangUp()
	res, err := f.await(here)
	for fault.Is(err, fault.NotFound) { // its row stands: the agent is about to hear of it, or has let go of it
		if rec, err = e.Process(ctx, c, ref, processID); err != nil || rec.Result != nil {
			return rec, err
		}
		t := time.NewTimer(lostPause)
		select {
		case <-t.C:
		case <-here.Done():
		}
		t.Stop()
		res, err = f.await(here)
	}
	switch {
	case err == nil:
		rec.State, rec.Result = sandbox.ProcessExited, &res
		if err := u.markOne(ctx, &rec); err != nil {
			return sandbox.Process{}, err
		}
		if f.last > 0 { // it went down with its sandbox
			rec.LastSeq = f.last
			return rec, nil
		}
		if last, err := u.l.client.Process(ctx, processID); err == nil { // frames came while it was waited for
			rec.LastSeq = max(rec.LastSeq, last.LastSeq)
		}
		return rec, nil
	case ctx.Err() != nil:
		return sandbox.Process{}, ctx.Err()
	case bound.Err() != nil:
		return sandbox.Process{}, core.Stopping()
	}
	return rec, nil
}

// awaitRow is WaitProcess for a sandbox that is down, or about to be.
func (e *Engine) awaitRow(ctx context.Context, c access.Caller, ref, processID string, wait time.Duration) (sandbox.Process, error) {
	for until := time.Now().Add(wait); ; {
		rec, err := e.Process(ctx, c, ref, processID)
		if err != nil || rec.Result != nil || !time.Now().Before(until) {
			return rec, err
		}
		t := time.NewTimer(min(rowPause, time.Until(until)))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return sandbox.Process{}, ctx.Err()
		case <-e.group.Context().Done():
			t.Stop()
			return sandbox.Process{}, core.Stopping()
		}
	}
}

// rowPause is the time between two looks at a row.
const rowPause = 20 * time.Millisecond

// SignalProcess sends a signal to a process, or with tree to all that it started.
// One that has ended is fault.State.
func (e *Engine) SignalProcess(ctx context.Context, c access.Caller, ref, processID string, sig syscall.Signal, tree bool) error {
	return e.control(ctx, c, ref, processID, func(u *Use, processID string) error {
		return u.sending(ctx, processID, sig, func() error {
			if x := e.extension.Command(u, processID); x != nil {
				return x.Signal(ctx, sig)
			}
			return u.l.client.Signal(ctx, processID, sig, tree)
		})
	})
}

// ResizeProcess tells a process's terminal its new size, each 1 to 1000. A process
// without a terminal, or that has ended, is fault.State.
func (e *Engine) ResizeProcess(ctx context.Context, c access.Caller, ref, processID string, cols, rows int) error {
	var k check.Fields
	for name, n := range map[string]int{"cols": cols, "rows": rows} {
		if n < 1 || n > command.MaxTermSize {
			k.Bad(name, "%d is outside 1 to %d", n, command.MaxTermSize)
		}
	}
	if err := k.Err(); err != nil {
		return err
	}
	return e.control(ctx, c, ref, processID, func(u *Use, processID string) error {
		return u.l.client.Resize(ctx, processID, uint16(cols), uint16(rows))
	})
}

// control is a short call about one process of a sandbox that is up.
func (e *Engine) control(ctx context.Context, c access.Caller, ref, processID string, do func(u *Use, processID string) error) error {
	processID, err := e.processID(ctx, c, ref, processID)
	if err != nil {
		return err
	}
	return e.inside(ctx, c, ref, func(u *Use) error { return do(u, processID) })
}

// inside is a short call into a sandbox that is up.
func (e *Engine) inside(ctx context.Context, c access.Caller, ref string, do func(*Use) error) error {
	u, err := e.peek(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return err
	}
	defer u.End()
	return u.Fail(ctx, do(u))
}

// MaxInput is the most bytes of one InputRequest.
const MaxInput = 1 << 20

// InputRequest is a piece of a streamed standard input.
type InputRequest struct {
	Data []byte // at most MaxInput
	// Offset is where Data stands in the whole input, so that what was sent and not
	// answered can be sent again; below zero: behind whatever was taken.
	Offset int64
	End    bool          // the input ends behind Data
	Wait   time.Duration // how long the program may not read; zero: 10 s
}

const defaultInputWait = 10 * time.Second

// WriteInput writes to the standard input of a process that has a streamed one, or
// a terminal. A program that does not read takes less than Data, or nothing, and
// that is no error. One that has ended, or closed its input, is fault.State; an
// offset beyond what was taken is fault.Invalid.
func (e *Engine) WriteInput(ctx context.Context, c access.Caller, ref, processID string, r InputRequest) (sandbox.InputTaken, error) {
	var k check.Fields
	k.Timeout("wait_seconds", r.Wait, MaxCommandTimeout)
	if err := k.Err(); err != nil {
		return sandbox.InputTaken{}, err
	}
	if len(r.Data) > MaxInput {
		return sandbox.InputTaken{}, fault.New(fault.TooLarge, "the input has %d bytes, more than %d", len(r.Data), MaxInput).
			WithRemedy("send it in parts")
	}
	until := time.Now().Add(r.Wait)
	if r.Wait == 0 {
		until = time.Now().Add(defaultInputWait)
	}
	var sum sandbox.InputTaken
	err := e.control(ctx, c, ref, processID, func(u *Use, processID string) error {
		for first := true; first || sum.Bytes < len(r.Data); first = false {
			in := agent.Input{Offset: r.Offset, Patience: max(time.Until(until), time.Millisecond)}
			in.Data = r.Data[sum.Bytes:min(sum.Bytes+agent.MaxInput, len(r.Data))]
			in.End = r.End && sum.Bytes+len(in.Data) == len(r.Data)
			if r.Offset >= 0 {
				in.Offset += int64(sum.Bytes)
			}
			taken, err := u.l.client.Input(ctx, processID, in)
			for fault.Is(err, fault.NotFound) && time.Now().Before(until) {
				x := e.extension.Command(u, processID)
				if x == nil || x.Await(ctx, rowPause) != nil { // else it waits for its turn
					break
				}
				taken, err = u.l.client.Input(ctx, processID, in)
			}
			if fault.Is(err, fault.NotFound) && e.extension.Command(u, processID) != nil {
				return fault.New(fault.State, "the command %s has not begun in this time: its shell runs what came before it, or has ended", processID).
					WithRemedy("write to it again later, or wait longer")
			}
			if err != nil {
				return err
			}
			sum = sandbox.InputTaken{Bytes: sum.Bytes + taken.Bytes, Total: taken.Total, Closed: taken.Closed}
			if taken.Bytes < len(in.Data) {
				return nil
			}
		}
		return nil
	})
	return sum, err
}
