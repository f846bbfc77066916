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

// StartIn makes a process of a command that another process, a shell, is about to run in itself: with
// a record, a log and, with StreamStdin, an input like any other. Nothing is started. The shell opens the
// command's streams, which are pipes named streams and a digit: 0 is the input, where that is streamed, 1
// and 2 are the outputs; merged ones are 1. Of cmd the ID, the command, Cwd, StreamStdin, Merge, MaxStdout,
// MaxStderr and Redact count. An agent that cannot do it is fault.Unsupported.
func (c *Client) StartIn(ctx context.Context, shellID string, cmd Command) (rec sandbox.Process, streams string, err error) {
	if err := cmd.checkText(); err != nil {
		return rec, "", err
	}
	var w wire.Record
	if err := c.ask(ctx, &wire.Request{Op: wire.OpStartIn, ID: cmd.ID, In: shellID, Start: cmd.wire()}, &w); err != nil {
		return rec, "", err
	}
	const longest = 200 // of a path that the agent makes up
	if !strings.HasPrefix(w.Streams, "/") || len(w.Streams) > longest || !utf8.ValidString(w.Streams) || strings.ContainsRune(w.Streams, 0) {
		return rec, "", fault.New(fault.Unavailable, "the sandbox's agent gave an answer that makes no sense")
	}
	rec, err = record(w, cmd.ID)
	return rec, w.Streams, err
}

// Conclude ends a process that StartIn made, of whose result the exit code, the signal and the cause are
// given. It returns the record, with all of the result. Of several ends the first stands, and that of the
// shell is one, too.
func (c *Client) Conclude(ctx context.Context, processID string, res sandbox.Result) (sandbox.Process, error) {
	var w wire.Record
	end := &wire.Result{ExitCode: res.ExitCode, Signal: res.Signal, Cause: string(res.Cause), CauseDetail: res.CauseDetail}
	if err := c.ask(ctx, &wire.Request{Op: wire.OpConclude, ID: processID, Result: end}, &w); err != nil {
		return sandbox.Process{}, err
	}
	return record(w, processID)
}
