// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// command brings one command to its end, if it has not ended already. The error is
// that the run cannot go on.
func (w *worker) command(ctx, life context.Context, i int) error {
	c := w.record().Commands[i]
	switch c.Status {
	case sandbox.CommandQueued:
		c.ProcessID = sandbox.NewProcessID()
		err := w.commit(ctx, change{
			run: func(run *sandbox.Run) {
				at := &run.Commands[i]
				at.Status, at.ProcessID, at.StartedAt = sandbox.CommandRunning, c.ProcessID, w.r.now()
			},
			commands: []int{i},
			events:   []*sandbox.RunEvent{w.r.event(sandbox.RunCommandStarted, i)},
		})
		if err != nil {
			return err
		}
		w.r.o.Checkpoint("run.command")
		if err := w.begin(ctx, i); err != nil {
			return w.notBegun(ctx, i, err)
		}
	case sandbox.CommandRunning: // of an earlier server
		row, err := w.row(ctx, c.ProcessID)
		if err != nil {
			return err
		}
		if row == nil { // which ended before it could begin it
			if err := w.begin(ctx, i); err != nil {
				return w.notBegun(ctx, i, err)
			}
		}
	default:
		return nil
	}
	w.r.o.Checkpoint("run.began")
	res, err := w.follow(ctx, i)
	if err != nil {
		return err
	}
	return w.commandEnded(life, i, res)
}

// begin starts the process that a command was promised.
func (w *worker) begin(ctx context.Context, i int) error {
	run := w.record()
	c := run.Commands[i]
	most := w.room()
	_, err := w.r.engine.StartProcess(ctx, w.caller, string(run.Sandbox), engine.StartRequest{
		Shell: c.Shell, Argv: c.Argv, Cwd: c.Cwd, Env: c.Env, User: run.User, Timeout: c.Timeout, MaxStdout: min(most, w.r.o.Defaults.Stdout), MaxStderr: min(most, w.r.o.Defaults.Stderr),
		ProcessID: c.ProcessID,
	})
	return err
}

// room is how many bytes may be kept of each stream of the next command.
func (w *worker) room() int64 {
	const least = 4 << 10
	left := int64(MaxOutput)
	for _, c := range w.record().Commands {
		left -= min(c.StdoutBytes, MaxStream) + min(c.StderrBytes, MaxStream)
	}
	return max(least, min(MaxStream, left/2))
}

// row returns the event of a process; nil where it was never meant to begin.
func (w *worker) row(ctx context.Context, processID string) (*sandbox.Event, error) {
	var rows []*sandbox.Event
	err := w.r.store.View(ctx, func(tx store.Tx) (err error) {
		rows, _, err = tx.Events().List(store.EventQuery{Sandbox: w.record().Sandbox, ProcessID: processID, Limit: 1})
		return err
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// What the record of a command has that did not end by itself, as a shell tells it.
const (
	exitNotStarted = 127
	exitKilled     = 128 + 9
)

// notBegun ends a command that could not begin. What is the command's own fault (a
// directory that is missing) is its failure; anything else is the run's.
func (w *worker) notBegun(ctx context.Context, i int, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text := reason(err)
	cerr := w.commit(ctx, change{
		run: func(run *sandbox.Run) {
			c := &run.Commands[i]
			c.Status, c.Error, c.ExitCode, c.EndedAt = sandbox.CommandFailed, text, exitNotStarted, w.r.now()
		},
		commands: []int{i},
		events:   []*sandbox.RunEvent{w.r.event(sandbox.RunCommandFinished, i)},
	})
	if cerr != nil {
		return cerr
	}
	switch fault.Of(err) {
	case fault.Invalid, fault.Denied, fault.TooLarge:
		return nil
	}
	return fmt.Errorf("command %d could not begin: %w", i, err)
}

// commandEnded commits a command's result.
func (w *worker) commandEnded(ctx context.Context, i int, res sandbox.Result) error {
	err := w.commit(ctx, change{
		run: func(run *sandbox.Run) {
			c := &run.Commands[i]
			c.ExitCode, c.Signal, c.Cause, c.EndedAt = res.ExitCode, res.Signal, res.Cause, w.r.now()
			c.StdoutBytes, c.StderrBytes = max(c.StdoutBytes, res.StdoutBytes), max(c.StderrBytes, res.StderrBytes)
			c.StdoutTruncated, c.StderrTruncated = res.StdoutTruncated, res.StderrTruncated
			c.Status = statusOf(res)
		},
		commands: []int{i},
		events:   []*sandbox.RunEvent{w.r.event(sandbox.RunCommandFinished, i)},
	})
	w.r.o.Checkpoint("run.ended")
	return err
}

// statusOf takes the cause, and not the exit code, for what ended a command: 137 is
// what one has that ran out of memory, too.
func statusOf(res sandbox.Result) sandbox.CommandStatus {
	switch {
	case res.Cause == sandbox.CauseTimeout:
		return sandbox.CommandTimedOut
	case res.ExitCode != 0:
		return sandbox.CommandFailed
	}
	return sandbox.CommandCompleted
}

// endOf says how a command failed.
func endOf(c *sandbox.RunCommand) string {
	switch {
	case c.Error != "":
		return c.Error
	case c.Cause == sandbox.CauseTimeout:
		return fmt.Sprintf("its timeout of %s s passed", seconds(c.Timeout))
	case c.Cause != sandbox.CauseNone:
		return fmt.Sprintf("exit %d (%s)", c.ExitCode, c.Cause)
	case c.Signal != "":
		return fmt.Sprintf("exit %d (%s)", c.ExitCode, c.Signal)
	}
	return fmt.Sprintf("exit %d", c.ExitCode)
}

// seconds is how the wire writes a duration.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
