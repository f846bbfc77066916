// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Engine is what runs need of the engine; *engine.Engine is one.
type Engine interface {
	// Enter begins a verb and Go a goroutine; the engine ends after both.
	Enter(ctx context.Context, c access.Caller, scope access.Scope) (bound context.Context, leave func(), err error)
	Go(fn func(context.Context))
	WaitReady(ctx context.Context) error
	// RunsDropped receives a value after a delete that dropped runs of the sandbox.
	RunsDropped() <-chan struct{}
	// Connect keeps a sandbox in use until release.
	Connect(ctx context.Context, c access.Caller, scope access.Scope, ref, what string) (client *agent.Client, release func(), err error)

	CheckUser(user string) (string, error)
	CheckCommand(engine.ExecRequest) (agent.Command, error)
	CheckRecord(ctx context.Context, project string, id sandbox.ID, fields map[string][]string) error
	MostCommandTime() time.Duration

	Get(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Create(context.Context, access.Caller, engine.CreateRequest) (s *sandbox.Sandbox, created bool, err error)
	Update(ctx context.Context, c access.Caller, ref string, p update.Patch) (*sandbox.Sandbox, error)
	StartProcess(ctx context.Context, c access.Caller, ref string, r engine.StartRequest) (sandbox.Process, error)
	Process(ctx context.Context, c access.Caller, ref, processID string) (sandbox.Process, error)
	Follow(ctx context.Context, c access.Caller, ref, processID string, r engine.FollowRequest) (*engine.Following, error)
	KillProcess(ctx context.Context, c access.Caller, ref, processID string) error
}

// Options says what becomes of runs that have ended, and what a runner is made of beside.
type Options struct {
	Keep      time.Duration // they are deleted after that; zero: 7 days
	Most      int           // of a project, the oldest go first; zero: 10,000
	MaxOutput int64         // bytes of output of all, the oldest that have ended go first; zero: 2 GiB
	Artifacts ArtifactOptions
	Defaults  Defaults

	Logger  *slog.Logger     // nil: discard
	Metrics *Metrics         // nil: none
	Now     func() time.Time // the host's clock; nil: time.Now
	// Round is the most time between two looks for what is to be deleted; zero: a minute.
	Round time.Duration
	// Checkpoint is called at every commit point of a run, with a name such as "run.intent", as
	// those of the engine's verbs are. Nil: not called.
	Checkpoint func(name string)
}

func (o Options) filled() Options {
	o.Defaults = o.Defaults.Filled()
	if o.Keep <= 0 {
		o.Keep = 7 * 24 * time.Hour
	}
	if o.Most <= 0 {
		o.Most = 10_000
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = 2 << 30
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Round <= 0 {
		o.Round = time.Minute
	}
	if o.Checkpoint == nil {
		o.Checkpoint = func(string) {}
	}
	o.Artifacts = o.Artifacts.filled()
	return o
}

// Runner has the verbs of runs, and the goroutines that work at them. Its methods are safe for
// concurrent use, and answer fault.Unavailable unless the engine is ready.
type Runner struct {
	engine Engine
	store  store.Store
	o      Options
	queues queues
	wake   chan struct{} // something is to be collected

	mu      sync.Mutex
	workers map[string]*worker // by run
	crowded map[string]bool    // projects that may have more runs than are kept
}

// New returns a runner over an engine and the store that it has, too. It starts nothing: the
// engine's Run calls Resume.
func New(e Engine, s store.Store, o Options) *Runner {
	return &Runner{
		engine: e, store: s, o: o.filled(),
		wake: make(chan struct{}, 1), workers: make(map[string]*worker), crowded: make(map[string]bool),
	}
}

// now is the time as the store keeps it.
func (r *Runner) now() time.Time { return r.o.Now().UTC().Truncate(time.Microsecond) }

func (r *Runner) add(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers[w.id] = w
	r.o.Metrics.active.Set(float64(len(r.workers)))
}

func (r *Runner) remove(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.workers, w.id)
	r.o.Metrics.active.Set(float64(len(r.workers)))
}

// worker returns nil for a run that has ended, or never was.
func (r *Runner) worker(id string) *worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.workers[id]
}

func (r *Runner) event(t sandbox.RunEventType, command int) *sandbox.RunEvent {
	return &sandbox.RunEvent{Type: t, At: r.now(), Command: command}
}

// reason is the text of an error for a record: what the caller may see of it.
func reason(err error) string { return sandbox.Clip(fault.As(err).Message, sandbox.MaxEventDetail) }
