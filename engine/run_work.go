// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// work is the life of a run in this server. It returns without the run's end only
// when the engine ends: the next one goes on where the record says.
func (l *liveRun) work(ctx context.Context) {
	defer close(l.done)
	defer l.e.runs.remove(l)
	defer l.place.leave()
	select { // a run of the last server may not begin before the repair has ended
	case <-l.e.ready:
	case <-ctx.Done():
		return
	}
	if l.e.ending() {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	defer func() { cancel(); <-ended }()
	go func() { // ctx is done when the run is cancelled, too
		defer close(ended)
		select {
		case <-l.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := l.commands(ctx)
	if err == nil || !l.e.ending() {
		l.finish(l.e.group.ctx, err)
	}
}

// ending tells whether what fails now fails because the server stops.
func (e *Engine) ending() bool { return e.group.ctx.Err() != nil || e.phase.Load() == phaseOver }

// commands brings the run to the end of its last command. Its error is why it could not.
func (l *liveRun) commands(ctx context.Context) error {
	if err := l.place.wait(ctx); err != nil {
		return err
	}
	s, err := l.home(ctx)
	if err != nil {
		return err
	}
	for i, c := range l.record().Commands {
		if c.Status == sandbox.CommandRunning { // an earlier server began it, or was about to
			if err := l.command(ctx, i); err != nil {
				return err
			}
		}
	}
	// The sandbox is in use from the first command to the last, also between them.
	u, err := l.e.use(ctx, l.caller, access.SandboxesWrite, string(s.ID), actRun)
	if err != nil {
		return err
	}
	defer u.end()
	if l.record().State == sandbox.RunQueued {
		err := l.commit(ctx, runChange{
			change: func(r *sandbox.Run) { r.State, r.Sandbox, r.StartedAt = sandbox.RunRunning, s.ID, l.now() },
			events: []*sandbox.RunEvent{l.e.runEvent(sandbox.RunStarted, 0)},
		})
		if err != nil {
			return err
		}
		l.e.checkpoint("run.started")
	}
	for i := range l.record().Commands {
		if err := l.command(ctx, i); err != nil {
			return err
		}
		if c := l.record().Commands[i]; c.Failed() && !l.record().GoOn {
			break
		}
	}
	return ctx.Err()
}

func (l *liveRun) now() time.Time { return l.e.now().UTC().Truncate(time.Microsecond) }

// home gives the sandbox of the run, and makes it where it is named by a key.
func (l *liveRun) home(ctx context.Context) (*sandbox.Sandbox, error) {
	r := l.record()
	s, err := (*sandbox.Sandbox)(nil), error(nil)
	if r.Sandbox != "" {
		s, err = l.e.Get(ctx, l.caller, string(r.Sandbox))
	} else {
		ttl := r.TTL
		if ttl == 0 {
			ttl = DefaultRunTTL
		}
		s, _, err = l.e.Create(ctx, l.caller, CreateRequest{Key: r.Identifier, SlidingTTL: ttl})
	}
	if err != nil || r.TTL == 0 || s.TTL == r.TTL {
		return s, err
	}
	return l.e.Update(ctx, l.caller, string(s.ID), Patch{SlidingTTL: &r.TTL})
}

// command brings one command to its end, if it has not ended already. The error is
// that the run cannot go on.
func (l *liveRun) command(ctx context.Context, i int) error {
	c := l.record().Commands[i]
	switch c.Status {
	case sandbox.CommandQueued:
		c.ProcessID = sandbox.NewProcessID()
		err := l.commit(ctx, runChange{
			change: func(r *sandbox.Run) {
				at := &r.Commands[i]
				at.Status, at.ProcessID, at.StartedAt = sandbox.CommandRunning, c.ProcessID, l.now()
			},
			commands: []int{i},
			events:   []*sandbox.RunEvent{l.e.runEvent(sandbox.RunCommandStarted, i)},
		})
		if err != nil {
			return err
		}
		l.e.checkpoint("run.command")
		if err := l.begin(ctx, i); err != nil {
			return l.notBegun(ctx, i, err)
		}
	case sandbox.CommandRunning: // of an earlier server
		row, err := l.row(ctx, c.ProcessID)
		if err != nil {
			return err
		}
		if row == nil { // which ended before it could begin it
			if err := l.begin(ctx, i); err != nil {
				return l.notBegun(ctx, i, err)
			}
		}
	default:
		return nil
	}
	l.e.checkpoint("run.began")
	res, err := l.follow(ctx, i)
	if err != nil {
		return err
	}
	return l.commandEnded(l.e.group.ctx, i, res)
}

// begin starts the process that a command was promised.
func (l *liveRun) begin(ctx context.Context, i int) error {
	r := l.record()
	c := r.Commands[i]
	most := l.room()
	cmd, err := l.e.detached(StartRequest{
		Shell: c.Shell, Argv: c.Argv, Cwd: c.Cwd, Env: c.Env, User: r.User, Timeout: c.Timeout, MaxStdout: most, MaxStderr: most,
	})
	if err != nil {
		return err
	}
	cmd.ID = c.ProcessID
	u, err := l.e.use(ctx, l.caller, access.SandboxesWrite, string(r.Sandbox), actProcess)
	if err != nil {
		return err
	}
	f, err := u.launch(ctx, cmd, sandbox.EventExec, ignore, nil)
	if err != nil {
		return err // launch has ended the use
	}
	f.detach()
	l.e.group.spawn(f.stay)
	return nil
}

// room is how many bytes may be kept of each stream of the next command.
func (l *liveRun) room() int64 {
	const least = 4 << 10
	left := int64(MaxRunOutput)
	for _, c := range l.record().Commands {
		left -= min(c.StdoutBytes, RunOutput) + min(c.StderrBytes, RunOutput)
	}
	return max(least, min(RunOutput, left/2))
}

// row gives the event of a process; nil where it was never meant to begin.
func (l *liveRun) row(ctx context.Context, processID string) (*sandbox.Event, error) {
	var rows []*sandbox.Event
	err := l.e.store.View(ctx, func(tx store.Tx) (err error) {
		rows, _, err = tx.Events().List(store.EventQuery{Sandbox: l.record().Sandbox, ProcessID: processID, Limit: 1})
		return err
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// notBegun ends a command that could not begin. What is the command's own fault (a
// directory that is missing) is its failure; anything else is the run's.
func (l *liveRun) notBegun(ctx context.Context, i int, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if l.e.ending() {
		return shuttingDown()
	}
	text := reason(err)
	cerr := l.commit(ctx, runChange{
		change: func(r *sandbox.Run) {
			c := &r.Commands[i]
			c.Status, c.Error, c.ExitCode, c.EndedAt = sandbox.CommandFailed, text, exitNotStarted, l.now()
		},
		commands: []int{i},
		events:   []*sandbox.RunEvent{l.e.runEvent(sandbox.RunCommandFinished, i)},
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
func (l *liveRun) commandEnded(ctx context.Context, i int, res agent.Result) error {
	err := l.commit(ctx, runChange{
		change: func(r *sandbox.Run) {
			c := &r.Commands[i]
			c.ExitCode, c.Signal, c.Cause, c.EndedAt = res.ExitCode, res.Signal, res.Cause, l.now()
			c.StdoutBytes, c.StderrBytes = max(c.StdoutBytes, res.StdoutBytes), max(c.StderrBytes, res.StderrBytes)
			c.StdoutTruncated, c.StderrTruncated = res.StdoutTruncated, res.StderrTruncated
			c.Status = statusOf(res)
		},
		commands: []int{i},
		events:   []*sandbox.RunEvent{l.e.runEvent(sandbox.RunCommandFinished, i)},
	})
	l.e.checkpoint("run.ended")
	return err
}

// statusOf takes the cause, and not the exit code, for what ended a command: 137 is
// what one has that ran out of memory, too.
func statusOf(res agent.Result) sandbox.CommandStatus {
	switch {
	case res.Cause == sandbox.CauseTimeout:
		return sandbox.CommandTimedOut
	case res.ExitCode != 0:
		return sandbox.CommandFailed
	}
	return sandbox.CommandCompleted
}

// finish writes the end of the run: its artifacts first, then its state with its last
// event.
func (l *liveRun) finish(ctx context.Context, failed error) {
	for i, c := range l.record().Commands {
		if c.Status != sandbox.CommandRunning {
			continue
		}
		res, err := l.outcome(ctx, i)
		if err == nil {
			err = l.commandEnded(ctx, i, res)
		}
		if err != nil && l.e.ending() {
			return
		}
	}
	r := l.record()
	canceled := r.Canceled && failed != nil
	var why string
	state, last := sandbox.RunCompleted, sandbox.RunFinished
	for i := range r.Commands {
		if c := &r.Commands[i]; why == "" && c.Failed() {
			why = fmt.Sprintf("command %d: %s", i, endOf(c))
		}
	}
	switch {
	case canceled:
		state, why = sandbox.RunCanceled, "it was canceled"
	case failed != nil:
		why = reason(failed)
	}
	if why != "" && !canceled {
		state = sandbox.RunFailed
	}
	if why != "" {
		last = sandbox.RunFailedEvent
	}
	if !canceled && r.Sandbox != "" {
		if err := l.extract(ctx); err != nil {
			return // the next server does it
		}
	}
	var all []int
	for i := range r.Commands {
		all = append(all, i)
	}
	err := l.commit(ctx, runChange{
		change: func(r *sandbox.Run) {
			r.State, r.Error, r.EndedAt = state, why, l.now()
			for i := range r.Commands {
				c := &r.Commands[i]
				c.Env = emptied(c.Env)
				if c.Status == sandbox.CommandRunning { // what became of it is not known
					c.Status, c.Error, c.EndedAt = sandbox.CommandFailed, "how it ended is not known", r.EndedAt
				}
			}
		},
		commands: all,
		events:   []*sandbox.RunEvent{l.e.runEvent(last, 0)},
	})
	if err != nil {
		return
	}
	l.e.checkpoint("run.outcome")
	l.e.runs.crowd(r.Project)
}

// emptied keeps the names of variables.
func emptied(env map[string]string) map[string]string {
	if env == nil {
		return nil
	}
	out := make(map[string]string, len(env))
	for n := range env {
		out[n] = ""
	}
	return out
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
