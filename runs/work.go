// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/sandbox"
)

// activity is what a run does to its sandbox, in a word for people.
const activity = "a run"

// work is the life of a run in this server, on a context that ends with the engine. It returns
// without the run's end only when the engine ends: the next one goes on where the record says.
func (w *worker) work(life context.Context) {
	defer close(w.done)
	defer w.r.remove(w)
	defer w.ticket.leave()
	if w.r.engine.WaitReady(life) != nil { // a run of the last server may not begin before the repair has ended
		return
	}
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	ended := make(chan struct{})
	defer func() { cancel(); <-ended }()
	go func() { // ctx is done when the run is cancelled, too
		defer close(ended)
		select {
		case <-w.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := w.commands(ctx, life)
	if err == nil || life.Err() == nil {
		w.finish(life, err)
	}
}

// commands brings the run to the end of its last command. Its error is why it could not.
func (w *worker) commands(ctx, life context.Context) error {
	if err := w.ticket.wait(ctx); err != nil {
		return err
	}
	s, err := w.sandbox(ctx)
	if err != nil {
		return err
	}
	for i, c := range w.record().Commands {
		if c.Status == sandbox.CommandRunning { // an earlier server began it, or was about to
			if err := w.command(ctx, life, i); err != nil {
				return err
			}
		}
	}
	// The sandbox is in use from the first command to the last, also between them.
	_, release, err := w.r.engine.Connect(ctx, w.caller, access.SandboxesWrite, string(s.ID), activity)
	if err != nil {
		return err
	}
	defer release()
	if w.record().State == sandbox.RunQueued {
		err := w.commit(ctx, change{
			run:    func(run *sandbox.Run) { run.State, run.Sandbox, run.StartedAt = sandbox.RunRunning, s.ID, w.r.now() },
			events: []*sandbox.RunEvent{w.r.event(sandbox.RunStarted, 0)},
		})
		if err != nil {
			return err
		}
		w.r.o.Checkpoint("run.started")
	}
	for i := range w.record().Commands {
		if err := w.command(ctx, life, i); err != nil {
			return err
		}
		if c := w.record().Commands[i]; c.Failed() && !w.record().GoOn {
			break
		}
	}
	return ctx.Err()
}

// sandbox returns the sandbox of the run, and makes it where it is named by a key.
func (w *worker) sandbox(ctx context.Context) (*sandbox.Sandbox, error) {
	run := w.record()
	s, err := (*sandbox.Sandbox)(nil), error(nil)
	if run.Sandbox != "" {
		s, err = w.r.engine.Get(ctx, w.caller, string(run.Sandbox))
	} else {
		ttl := run.TTL
		if ttl == 0 {
			ttl = w.r.o.Defaults.TTL
		}
		s, _, err = w.r.engine.Create(ctx, w.caller, engine.CreateRequest{Key: run.Identifier, SlidingTTL: ttl})
	}
	if err != nil || run.TTL == 0 || s.TTL == run.TTL {
		return s, err
	}
	return w.r.engine.Update(ctx, w.caller, string(s.ID), update.Patch{SlidingTTL: &run.TTL})
}

// finish writes the end of the run: its artifacts first, then its state with its last
// event.
func (w *worker) finish(ctx context.Context, failed error) {
	for i, c := range w.record().Commands {
		if c.Status != sandbox.CommandRunning {
			continue
		}
		res, err := w.outcome(ctx, i)
		if err == nil {
			err = w.commandEnded(ctx, i, res)
		}
		if err != nil && ctx.Err() != nil {
			return
		}
	}
	run := w.record()
	canceled := run.Canceled && failed != nil
	var why string
	state, last := sandbox.RunCompleted, sandbox.RunFinished
	for i := range run.Commands {
		if c := &run.Commands[i]; why == "" && c.Failed() {
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
	if !canceled && run.Sandbox != "" {
		if err := w.extract(ctx); err != nil {
			return // the next server does it
		}
	}
	var all []int
	for i := range run.Commands {
		all = append(all, i)
	}
	err := w.commit(ctx, change{
		run: func(run *sandbox.Run) {
			run.State, run.Error, run.EndedAt = state, why, w.r.now()
			for i := range run.Commands {
				c := &run.Commands[i]
				c.Env = emptied(c.Env)
				if c.Status == sandbox.CommandRunning { // what became of it is not known
					c.Status, c.Error, c.EndedAt = sandbox.CommandFailed, "how it ended is not known", run.EndedAt
				}
			}
		},
		commands: all,
		events:   []*sandbox.RunEvent{w.r.event(last, 0)},
	})
	if err != nil {
		return
	}
	w.r.o.Checkpoint("run.outcome")
	w.r.o.Metrics.ended.WithLabelValues(string(state)).Inc()
	w.r.crowd(run.Project)
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
