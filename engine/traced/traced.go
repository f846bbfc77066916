// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package traced makes spans of what verbs and commands do. Its store looks on while they commit: each verb commits what it is
// about to do, and later what became of it, and the span is the time between. So no verb knows of traces.
package traced

import (
	"context"
	"sync"
	"time"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/trace"
)

// Options of a [Recorder].
type Options struct {
	// Commands adds the text of commands to their spans, as their events have it: without the values of secrets.
	Commands bool
}

// maxOpen is how many verbs, and how many commands, have a span at once; more have none.
const maxOpen = 20_000

// Recorder makes spans. It is safe for concurrent use.
type Recorder struct {
	store  store.Store
	tracer *trace.Tracer
	o      Options

	mu       sync.Mutex
	verbs    map[sandbox.ID]verb    // of sandboxes that a verb works on
	commands map[string]*trace.Span // that run, see commandOf
}

// verb is what a sandbox is in.
type verb struct {
	state sandbox.State // which says what is meant
	span  *trace.Span
}

// New returns a recorder of what is committed through its Store.
func New(s store.Store, t *trace.Tracer, o Options) *Recorder {
	return &Recorder{store: s, tracer: t, o: o, verbs: make(map[sandbox.ID]verb), commands: make(map[string]*trace.Span)}
}

// Store returns the recorder's store.
func (r *Recorder) Store() store.Store { return tracedStore{r.store, r} }

type tracedStore struct {
	store.Store
	r *Recorder
}

func (s tracedStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	var seen *tracedTx
	err := s.Store.Update(ctx, func(tx store.Tx) error {
		seen = &tracedTx{Tx: tx} // anew, where it is tried again
		return fn(seen)
	})
	if err == nil && seen != nil && len(seen.steps) > 0 {
		s.r.committed(ctx, seen.steps)
	}
	return err
}

// tracedTx notes what one Update changes.
type tracedTx struct {
	store.Tx
	steps []step
}

// step is one of: the state of a record, an event, the result of a command.
type step struct {
	box      sandbox.ID
	state    sandbox.State
	image    string
	event    *sandbox.Event
	finished bool
}

func (t *tracedTx) Events() store.Events       { return tracedEvents{t.Tx.Events(), t} }
func (t *tracedTx) Sandboxes() store.Sandboxes { return tracedSandboxes{t.Tx.Sandboxes(), t} }

type tracedEvents struct {
	store.Events
	t *tracedTx
}

func (e tracedEvents) Append(ev *sandbox.Event) error {
	err := e.Events.Append(ev)
	if err == nil {
		e.t.steps = append(e.t.steps, step{event: ev})
	}
	return err
}

func (e tracedEvents) Finish(ev *sandbox.Event) error {
	err := e.Events.Finish(ev)
	if err == nil {
		e.t.steps = append(e.t.steps, step{event: ev, finished: true})
	}
	return err
}

type tracedSandboxes struct {
	store.Sandboxes
	t *tracedTx
}

func (q tracedSandboxes) Insert(s *sandbox.Sandbox) error {
	return q.noted(s, q.Sandboxes.Insert(s))
}

func (q tracedSandboxes) Update(s *sandbox.Sandbox) error {
	return q.noted(s, q.Sandboxes.Update(s))
}

func (q tracedSandboxes) noted(s *sandbox.Sandbox, err error) error {
	if err == nil {
		q.t.steps = append(q.t.steps, step{box: s.ID, state: s.State, image: s.Image})
	}
	return err
}

func (q tracedSandboxes) Delete(id sandbox.ID) error {
	err := q.Sandboxes.Delete(id)
	if err == nil {
		q.t.steps = append(q.t.steps, step{box: id, state: sandbox.Deleted})
	}
	return err
}

// verbs are the names of spans by the state that says what is meant, and the state in which it is done.
var verbs = map[sandbox.State]struct {
	name string
	done sandbox.State
}{
	sandbox.Creating:    {"create", sandbox.Running},
	sandbox.Pausing:     {"pause", sandbox.Paused},
	sandbox.Resuming:    {"resume", sandbox.Running},
	sandbox.Stopping:    {"stop", sandbox.Stopped},
	sandbox.Archiving:   {"archive", sandbox.Archived},
	sandbox.Unarchiving: {"unarchive", sandbox.Stopped},
	sandbox.Starting:    {"start", sandbox.Running},
	sandbox.Restoring:   {"restore", sandbox.Stopped}, // or running, where it was
	sandbox.Deleting:    {"delete", sandbox.Deleted},
}

// committed makes spans of what a transaction changed.
func (r *Recorder) committed(ctx context.Context, steps []step) {
	now := time.Now()
	for _, st := range steps {
		switch {
		case st.event == nil:
			r.moved(ctx, st, now)
		case st.finished:
			r.finished(st.event, now)
		case !st.event.Done:
			r.began(ctx, st.event, now)
		default:
			trace.Of(ctx).Event(string(st.event.Type), now)
		}
	}
}

// moved ends the verb that a sandbox was in, and begins the one that it is in now.
func (r *Recorder) moved(ctx context.Context, st step, now time.Time) {
	r.mu.Lock()
	was, is := r.verbs[st.box]
	if is && was.state == st.state { // something else of the record changed
		r.mu.Unlock()
		return
	}
	delete(r.verbs, st.box)
	r.mu.Unlock()
	if is {
		was.span.Text("sandpit.state", string(st.state))
		if st.state != verbs[was.state].done && (was.state != sandbox.Restoring || st.state != sandbox.Running) {
			was.span.Fail("undone")
		}
		was.span.EndAt(now)
	}
	v, ok := verbs[st.state]
	if !ok {
		return
	}
	s := r.begin(ctx, "sandbox "+v.name, now)
	if s == nil {
		return
	}
	s.Text("sandpit.sandbox.id", string(st.box))
	s.Text("sandpit.image", st.image)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.verbs) < maxOpen {
		r.verbs[st.box] = verb{st.state, s}
	}
}

// began begins a command.
func (r *Recorder) began(ctx context.Context, ev *sandbox.Event, now time.Time) {
	name := "command"
	if ev.Type != sandbox.EventExec {
		name = string(ev.Type)
	}
	s := r.begin(ctx, name, now)
	if s == nil {
		return
	}
	s.Text("sandpit.sandbox.id", string(ev.Sandbox))
	s.Text("sandpit.process.id", ev.ProcessID)
	s.Text("sandpit.user", ev.User)
	s.Text("sandpit.language", ev.Language)
	if r.o.Commands {
		s.Text("process.command_line", ev.Command)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.commands) < maxOpen {
		r.commands[commandOf(ev)] = s
	}
}

func commandOf(ev *sandbox.Event) string { return string(ev.Sandbox) + " " + ev.ProcessID }

// finished ends a command. One of an earlier server has no span.
func (r *Recorder) finished(ev *sandbox.Event, now time.Time) {
	r.mu.Lock()
	s, is := r.commands[commandOf(ev)]
	delete(r.commands, commandOf(ev))
	r.mu.Unlock()
	if !is {
		return
	}
	s.Int("process.exit.code", int64(ev.ExitCode))
	s.Text("sandpit.signal", ev.Signal)
	s.Int("sandpit.stdout_bytes", ev.StdoutBytes)
	s.Int("sandpit.stderr_bytes", ev.StderrBytes)
	s.Int("sandpit.duration_us", ev.Duration.Microseconds())
	switch {
	case ev.Cause != "":
		s.Fail(string(ev.Cause))
	case ev.ExitCode != 0:
		s.Fail("exit")
	}
	s.EndAt(now)
}

// begin begins a span within that of ctx; what no request asked for is a trace of its own.
func (r *Recorder) begin(ctx context.Context, name string, at time.Time) *trace.Span {
	if trace.Decided(ctx) {
		return trace.Of(ctx).Child(name, trace.Internal, at)
	}
	return r.tracer.Root(name, at)
}
