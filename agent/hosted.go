// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"strings"
	"unicode/utf8"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// MaxRunText is the most bytes of a text of Held.Run.
const MaxRunText = wire.MaxData

// HoldIn sends a command that another process, a shell, is to run in itself; [Held.Run] has it run. The command is a
// process with a record, a log and, with StreamStdin, an input like any other; nothing is started for it. It ends
// when the shell does, or when the first says so who calls [Process.Conclude] or [Client.Conclude]. Of cmd the ID,
// the command, Cwd, StreamStdin, Merge, MaxStdout, MaxStderr and Redact count.
func (c *Client) HoldIn(ctx context.Context, shellID string, cmd Command) (*Held, error) {
	if err := cmd.checkText(); err != nil {
		return nil, err
	}
	s, err := c.open(ctx, &wire.Request{Op: wire.OpRunIn, ID: cmd.ID, In: shellID, Start: cmd.wire()}, true)
	if err != nil {
		return nil, err
	}
	return &Held{c: c, s: s, cmd: cmd}, nil
}

// Run has a shell run the command of HoldIn. text is the shell's input for it, in which each NUL stands for
// [Process.Streams]. The agent writes all of it, also if the connection ends; if it is empty, the caller writes. If the
// agent does not support it, Run returns fault.Unsupported, and nothing was written.
func (h *Held) Run(text []byte) (*Process, error) {
	var b []byte
	if len(text) > 0 {
		b = wire.Append(b, wire.Data, text)
	}
	p, err := h.start(wire.Append(b, wire.End, nil))
	if err != nil {
		return nil, err
	}
	const longest = 200 // of a path that the agent makes up
	if at := p.streams; !strings.HasPrefix(at, "/") || len(at) > longest || !utf8.ValidString(at) || strings.ContainsRune(at, 0) {
		_ = p.Close()
		return nil, fault.New(fault.Unavailable, "the sandbox's agent gave an answer that makes no sense")
	}
	return p, nil
}

// Streams is where the shell finds the streams of a command of HoldIn: in pipes named so, with a digit behind it. 0 is
// the input, where that is streamed, 1 and 2 are the outputs; merged ones are 1.
func (p *Process) Streams() string { return p.streams }

// Conclude ends a process that HoldIn made, as [Client.Conclude] does, without waiting: Next returns its end.
func (p *Process) Conclude(res sandbox.Result) error {
	b, err := wire.AppendJSON(nil, wire.Told, told(res))
	if err != nil {
		return err
	}
	p.writeMu.Lock()
	defer p.writeMu.Unlock()
	if _, err := p.s.Write(b); err != nil {
		return p.s.failed(err)
	}
	return nil
}

// Conclude ends a process that HoldIn made, of whose result the exit code, the signal and the cause are
// given. It returns the record, with all of the result. Of several ends the first stands, and that of the
// shell is one, too.
func (c *Client) Conclude(ctx context.Context, processID string, res sandbox.Result) (sandbox.Process, error) {
	var w wire.Record
	if err := c.ask(ctx, &wire.Request{Op: wire.OpConclude, ID: processID, Result: told(res)}, &w); err != nil {
		return sandbox.Process{}, err
	}
	return record(w, processID)
}

func told(res sandbox.Result) *wire.Result {
	return &wire.Result{ExitCode: res.ExitCode, Signal: res.Signal, Cause: string(res.Cause), CauseDetail: res.CauseDetail}
}
