// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Wait waits until a process has ended, and returns how. It reads nothing of its output. An agent
// of a build that cannot do this is fault.Unsupported; then Attach can.
func (c *Client) Wait(ctx context.Context, processID string) (sandbox.Result, error) {
	s, err := c.call(ctx, &wire.Request{Op: wire.OpWait, ID: processID}, nil)
	if err != nil {
		return sandbox.Result{}, err
	}
	defer s.close()
	s.patient() // that may take days
	var w wire.Ending
	if err := s.finish(&w); err != nil {
		return sandbox.Result{}, err
	}
	return result(w.Result), nil
}

// Resize sets the size of a process's terminal, each from 1 to 2000. A process without a
// terminal, or that has ended, is fault.State.
func (c *Client) Resize(ctx context.Context, processID string, cols, rows uint16) error {
	return c.ask(ctx, &wire.Request{Op: wire.OpResize, ID: processID, Cols: cols, Rows: rows}, nil)
}

// LimitLogs changes how many bytes the logs of all processes may take together. An agent of a
// build that has no such limit is fault.Unsupported.
func (c *Client) LimitLogs(ctx context.Context, bytes int64) error {
	return c.ask(ctx, &wire.Request{Op: wire.OpLimitLogs, Size: bytes}, nil)
}

// SetAccount has the sandbox's user called so, from the next command on: in the files inside that tell
// of accounts, and by the variables of commands. Its home and its directory for work are made. What the
// image gave to others is fault.Invalid, and nothing has changed; again is that the disk had the account
// before, and then nothing is refused. An agent of a build that cannot do it is fault.Unsupported.
func (c *Client) SetAccount(ctx context.Context, a sandbox.Account, again bool) error {
	a = a.Full()
	return c.ask(ctx, &wire.Request{Op: wire.OpAccount, Account: &wire.Account{Name: a.Name, Home: a.Home, Workdir: a.Workdir, Again: again}}, nil)
}

// BeginAccount is SetAccount of which the agent makes nothing before it answers. It is for an account that the disk
// is known to suit: what speaks against it after all is the error of each call that waits for it.
func (c *Client) BeginAccount(ctx context.Context, a sandbox.Account) error {
	a = a.Full()
	return c.ask(ctx, &wire.Request{Op: wire.OpAccount, Account: &wire.Account{Name: a.Name, Home: a.Home, Workdir: a.Workdir, Lazy: true}}, nil)
}

// AwaitAccount waits until the sandbox has the account that its agent was told last, and returns why it has
// not got it. An agent of a build that cannot do it is fault.Unsupported; that one has it.
func (c *Client) AwaitAccount(ctx context.Context) error {
	return c.ask(ctx, &wire.Request{Op: wire.OpAccountMade}, nil)
}

// MaxInput is the most bytes of one [Input].
const MaxInput = wire.MaxLargeInput

// Input is a piece of a streamed standard input.
type Input struct {
	Data []byte // at most MaxInput
	// Offset is the position of Data in the whole input, in bytes. Bytes that the process has
	// taken already are not written again, so that a piece whose answer was lost can be sent
	// again. Below zero: after whatever was taken.
	Offset   int64
	End      bool          // the input ends behind Data
	Patience time.Duration // how long the program may not read; zero: as long as ctx
}

// Input writes to a streamed standard input, or a terminal. A process that has
// ended, has no streamed input or has closed it is fault.State; an Offset beyond
// what was taken is fault.Invalid.
func (c *Client) Input(ctx context.Context, processID string, in Input) (sandbox.InputTaken, error) {
	if len(in.Data) <= wire.MaxData {
		return c.input(ctx, processID, in, wire.OpInput)
	}
	taken, err := c.input(ctx, processID, in, wire.OpLargeInput)
	if !fault.Is(err, fault.Unsupported) {
		return taken, err
	}
	var sum sandbox.InputTaken // of an agent of an earlier build
	for sum.Bytes < len(in.Data) {
		part := in
		part.Data = in.Data[sum.Bytes:min(sum.Bytes+wire.MaxData, len(in.Data))]
		part.End = in.End && sum.Bytes+len(part.Data) == len(in.Data)
		if in.Offset >= 0 {
			part.Offset += int64(sum.Bytes)
		}
		taken, err := c.input(ctx, processID, part, wire.OpInput)
		if err != nil {
			return sandbox.InputTaken{}, err
		}
		sum = sandbox.InputTaken{Bytes: sum.Bytes + taken.Bytes, Total: taken.Total, Closed: taken.Closed}
		if taken.Bytes < len(part.Data) {
			break
		}
	}
	return sum, nil
}

func (c *Client) input(ctx context.Context, processID string, in Input, op string) (sandbox.InputTaken, error) {
	if len(in.Data) > MaxInput {
		return sandbox.InputTaken{}, fault.New(fault.TooLarge, "a piece of input has %d bytes, over the bound of %d", len(in.Data), MaxInput)
	}
	w := &wire.Input{Size: len(in.Data), Offset: in.Offset, End: in.End}
	if in.Patience > 0 {
		w.PatienceMS = max(1, in.Patience.Milliseconds())
	}
	s, err := c.open(ctx, &wire.Request{Op: op, ID: processID, Input: w}, true)
	if err != nil {
		return sandbox.InputTaken{}, err
	}
	defer s.close()
	sent := time.Now()
	if err := s.sendAll(in.Data); err != nil {
		return sandbox.InputTaken{}, err
	}
	var t wire.Taken
	if err := s.reply(&t); err != nil {
		return sandbox.InputTaken{}, err
	}
	if t.Bytes < 0 || t.Bytes > len(in.Data) || t.Total < 0 {
		return sandbox.InputTaken{}, s.broken("it took more input than there was")
	}
	// Callers go on with what is left: one that gave up at once would keep them busy for ever.
	if t.Bytes < len(in.Data) && (w.PatienceMS == 0 || time.Since(sent) < time.Duration(w.PatienceMS)*time.Millisecond) {
		return sandbox.InputTaken{}, s.broken("it gave up on input before its time")
	}
	return sandbox.InputTaken{Bytes: t.Bytes, Total: t.Total, Closed: t.Closed}, nil
}

// Suspend stops the clocks of all processes' time limits, and holds up new starts, until
// Continue: for a caller that is about to freeze the sandbox. An agent that is not frozen
// continues by itself after 10 s. Suspend waits for starts in progress; if ctx ends before, the
// agent may be suspended later. turn grows from each call of Suspend and Continue to the next, so
// that an abandoned call that arrives late has no effect; it is fault.State then.
func (c *Client) Suspend(ctx context.Context, turn int64) error {
	return c.ask(ctx, &wire.Request{Op: wire.OpSuspend, Turn: turn}, nil)
}

// Continue undoes Suspend. Calling it without one is fine.
func (c *Client) Continue(ctx context.Context, turn int64) error {
	return c.ask(ctx, &wire.Request{Op: wire.OpContinue, Turn: turn}, nil)
}
