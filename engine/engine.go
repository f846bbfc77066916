// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/blob"
	"sandpit.dev/engine/archived"
	"sandpit.dev/engine/backups"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/defaults"
	"sandpit.dev/engine/expiry"
	"sandpit.dev/engine/gates"
	"sandpit.dev/engine/hold"
	"sandpit.dev/engine/janitor"
	"sandpit.dev/engine/metrics"
	"sandpit.dev/engine/outcomes"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/engine/retention"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/internal/seal"
	"sandpit.dev/network/preset"
	"sandpit.dev/redact/redactlog"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Options is what an engine is made of.
type Options struct {
	Store    store.Store               // required
	Runtimes map[string]runtime.Driver // required: the drivers by name; at least one
	Default  string                    // the driver of a create that names none; may be empty with one driver
	Images   Images                    // required
	Policy   image.Policy              // what new sandboxes may have of them
	Defaults Defaults
	Network  NetworkOptions
	Keys     *seal.Ring       // of secrets; nil: a key of its own, so that none outlives the engine
	Version  string           // for Info
	Logger   *slog.Logger     // nil: discard
	Redact   *redactlog.Log   // of Logger's handler; nil: one that nothing reads
	Metrics  *metrics.Metrics // nil: none
	Pools    []prewarm.Pool   // sandboxes that are made ahead
	Events   retention.Options
	Archives blob.Store // where disks of archived sandboxes are kept; nil: nowhere
	// Up, if not nil, is called when a sandbox has started, or is found running, with its turn held: it must not wait.
	Up func(*sandbox.Sandbox)
	// JanitorRound is the least time from one look at all that the runtimes keep to the
	// next. 0: a minute.
	JanitorRound time.Duration

	// Now is the host's clock, which may be set while the engine runs. Nil: time.Now.
	Now func() time.Time
	// Checkpoint is called at every commit point of every verb, with a name such
	// as "create.intent": after the intent's commit, after the work ("create.done")
	// and after the outcome's commit ("create.outcome"). Tests end the process there.
	Checkpoint func(name string)
}

// Defaults are what a request that leaves a field out gets.
type Defaults = defaults.Defaults

// Images is what the engine needs of the images.
type Images = core.Images

// Engine is the verbs over one store. All its methods are safe for concurrent
// use, and answer fault.Unavailable unless Run is at work and Ready.
type Engine struct {
	core     *core.Core // what its parts share with it
	images   Images
	settings atomic.Pointer[defaults.Settings]
	builder  string // NetworkOptions.Builds
	gates    *gates.Gates
	ring     *seal.Ring
	secrets  *secrets.Cache
	version  string

	phase atomic.Int32
	ready chan struct{} // closed when phase is ready, or over
	group *core.Group   // set by Run before phase is ready
	since time.Time
	clock *expiry.Clock
	wall  func() time.Time
	fair  atomic.Pointer[time.Time] // before it nothing counts as idle, see [expiry.Look.Since]

	hearing   chan struct{}          // held by who waits for the first word of an agent, unasked
	outcomes  outcomes.Table[*entry] // of commands
	pools     *prewarm.Pools
	janitor   *janitor.Janitor
	snapshots *snapshot.Keeper
	volumes   *volume.Keeper
	archived  *archived.Keeper
	backups   *backups.Keeper
	// runsDropped has a value after a delete that dropped runs.
	runsDropped chan struct{}
	pruner      *retention.Pruner
	extension   extensions
	deleted     atomic.Pointer[func(sandbox.ID)] // see OnDeleted
	set         atomic.Pointer[func()]           // see OnSet
	up          func(*sandbox.Sandbox)

	mu      sync.Mutex
	entries map[sandbox.ID]*entry
	names   map[name]sandbox.ID // of the entries that have a key
	keys    *core.Turns[name]   // keys that a create is at
	// unadopted are sandboxes whose commands of an earlier server nobody follows yet.
	unadopted map[sandbox.ID]struct{}
}

// name is a key within its project.
type name struct{ project, key string }

const (
	phaseNew int32 = iota
	phaseRepairing
	phaseReady
	phaseOver
)

// New makes an engine and starts nothing. An option that is missing or out of
// bounds is fault.Invalid.
func New(o Options) (*Engine, error) {
	switch {
	case o.Store == nil:
		return nil, fault.InvalidField("store", "is missing")
	case o.Images == nil:
		return nil, fault.InvalidField("images", "is missing")
	case len(o.Runtimes) == 0:
		return nil, fault.InvalidField("runtimes", "is empty; at least one is needed")
	}
	if o.Default == "" && len(o.Runtimes) == 1 {
		for n := range o.Runtimes {
			o.Default = n
		}
	}
	if o.Runtimes[o.Default] == nil {
		return nil, fault.InvalidField("default", "there is no runtime %q", o.Default)
	}
	d, err := o.Defaults.Filled()
	if err != nil {
		return nil, err
	}
	if o.Network.Presets == nil {
		if o.Network.Presets, err = preset.New(preset.Options{}); err != nil {
			return nil, err
		}
	}
	e := &Engine{
		images: o.Images, builder: o.Network.Builds, ring: o.Keys,
		version: o.Version,
		clock:   expiry.NewClock(), runsDropped: make(chan struct{}, 1),
		up: o.Up, ready: make(chan struct{}), hearing: make(chan struct{}, heardAtOnce),
		entries: make(map[sandbox.ID]*entry), names: make(map[name]sandbox.ID), keys: core.NewTurns[name](),
		unadopted: make(map[sandbox.ID]struct{}),
	}
	e.settings.Store(&defaults.Settings{Defaults: d, Images: o.Policy, Network: o.Network.Rules})
	if e.ring == nil {
		if e.ring, err = seal.Parse(seal.Generate()); err != nil {
			return nil, err
		}
	}
	if o.Redact == nil {
		o.Redact = redactlog.New()
	}
	e.secrets = secrets.New(o.Store, e.ring, o.Redact, e.openSecrets)
	if e.wall = o.Now; e.wall == nil {
		e.wall = time.Now
	}
	e.core = &core.Core{
		Store: e.secrets.Store(), Runtimes: o.Runtimes, Default: o.Default, Holds: hold.New(snapshot.Patience), Metrics: o.Metrics, Log: o.Logger,
		Now: e.now, Checkpoint: o.Checkpoint, Spawn: func(fn func(context.Context)) { e.group.Spawn(fn) }, Retry: e.retry,
	}
	if e.core.Log == nil {
		e.core.Log = slog.New(slog.DiscardHandler)
	}
	if e.core.Metrics == nil {
		e.core.Metrics = metrics.New(nil)
	}
	if e.core.Checkpoint == nil {
		e.core.Checkpoint = func(string) {}
	}
	e.gates = gates.New(e.core, o.Network.Options, gates.Needs{
		Secrets: e.secrets, Ring: e.ring, Wall: e.wall, Context: func() context.Context { return e.group.Context() },
	})
	e.snapshots = snapshot.New(e.core, e.images, int64(d.Limits.DiskMB)<<20)
	e.volumes = volume.New(e.core)
	e.archived = archived.New(e.core, e.snapshots, o.Archives, e.swap)
	e.backups = backups.New(e.core, e.snapshots, e.volumes, e.archived, backups.Needs{Group: func() *core.Group { return e.group }, Turn: e.turnOf})
	if e.pools, err = prewarm.Open(e.core, e.images, o.Pools, d.Limits, d.Most); err != nil {
		return nil, err
	}
	e.janitor = janitor.New(e.core, janitor.Options{
		Round: o.JanitorRound, Each: func(ctx context.Context) { e.askBusy(ctx); e.archived.SweepBehind(); e.volumes.SweepBehind() },
		Spare: func(id sandbox.ID) bool { return e.pools.Owns(id) || e.inMemory(id) },
	})
	e.pruner = retention.New(e.core.Store, o.Events, retention.Needs{Round: e.janitor.Round(), Now: e.now, Spare: e.pools.Owns}, e.core.Metrics.EventsPruned, e.core.Log)
	for n, r := range e.core.Runtimes {
		if d, ok := r.(runtime.DiskReporter); ok {
			e.core.Metrics.Disk(n, d)
		}
	}
	return e, nil
}

// Run repairs what an earlier server left, then is the engine's life until ctx
// is done: clocks, watchers, verbs. It returns when all its goroutines have
// ended; verbs that were begun are finished first. Sandboxes and their commands
// go on running. It may be called once. Each of resume is called after the repair,
// before the engine is ready, to go on with what the earlier server was at. The error
// is that of a repair that the store refused, or of a resume, else nil.
func (e *Engine) Run(ctx context.Context, resume ...func(context.Context) error) error {
	if !e.phase.CompareAndSwap(phaseNew, phaseRepairing) {
		return fault.New(fault.Internal, "engine.Run was called twice")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.group = core.NewGroup(ctx)
	e.since = e.now()
	e.fair.Store(&e.since)
	err := e.repair(ctx)
	for _, r := range resume {
		if err == nil {
			err = r(ctx)
		}
	}
	if err == nil {
		e.phase.Store(phaseReady)
		close(e.ready)
		e.group.Spawn(e.runJanitor)
		e.group.Spawn(e.pruner.Run)
		e.runClock(ctx)
	} else if ctx.Err() != nil {
		err = nil
	}
	if e.phase.Swap(phaseOver) == phaseRepairing {
		close(e.ready)
	}
	cancel()
	e.group.Close()
	e.pools.Empty(ctx)
	return err
}

// Ready is nil once the repair is done and Run at work, else fault.Unavailable.
func (e *Engine) Ready() error {
	switch e.phase.Load() {
	case phaseReady:
		return nil
	case phaseOver:
		return core.Stopping()
	}
	err := fault.New(fault.Unavailable, "the server is starting: it is looking after the sandboxes of its last run")
	err.Retry = time.Second
	return err.WithRemedy("ask again in a moment")
}

// WaitReady waits until the repair is done, or the engine has ended, and gives
// what Ready does then; or ctx's error.
func (e *Engine) WaitReady(ctx context.Context) error {
	select {
	case <-e.ready:
		return e.Ready()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enterWork is enter for verbs that begin something: a disk without room for the records
// keeps what it has for what ends and deletes.
func (e *Engine) enterWork(c access.Caller, scope access.Scope) error {
	if err := e.enter(c, scope); err != nil {
		return err
	}
	if err := e.core.Store.Room(); err != nil {
		e.group.Leave()
		return err
	}
	return nil
}

// Health is nil where the engine is Ready, all runtimes can use their disks and its records
// take work; see [store.Store] and [runtime.Disk].
func (e *Engine) Health() error {
	if err := e.Ready(); err != nil {
		return err
	}
	for _, n := range e.core.RuntimeNames() {
		if r, ok := e.core.Runtimes[n].(runtime.DiskReporter); ok {
			if err := r.Disk().Failed; err != nil {
				return err
			}
		}
	}
	return e.core.Store.Room()
}

// enter is what every verb starts with: may the caller do this at all, and is
// the engine at work. The verb leaves by e.group.Leave.
func (e *Engine) enter(c access.Caller, scope access.Scope) error {
	if err := c.Require(scope); err != nil {
		return err
	}
	if err := e.Ready(); err != nil {
		return err
	}
	return e.group.Enter()
}
