// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/internal/budget"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Engine is what this package needs of the engine; *engine.Engine is one.
type Engine interface {
	Extend(engine.Extension)
	Use(ctx context.Context, c access.Caller, scope access.Scope, ref, what string) (*engine.Use, error)
	Peek(ctx context.Context, c access.Caller, ref string) (*engine.Use, error)
	Visit(ctx context.Context, c access.Caller, scope access.Scope, ref string) (*engine.Visit, error)
	Outcome(ctx context.Context, c access.Caller, of sandbox.ID, processID string) (ev *sandbox.Event, began bool, err error)
	WaitProcess(ctx context.Context, c access.Caller, ref, processID string, wait time.Duration) (sandbox.Process, error)
	Follow(ctx context.Context, c access.Caller, ref, processID string, r engine.FollowRequest) (*engine.Following, error)
	CheckCommand(engine.ExecRequest) (agent.Command, error)
	Defaults() engine.Defaults
	Store() store.Store
	Now() time.Time
	Go(func(context.Context))
	Bind(context.Context) (context.Context, context.CancelFunc)
	Answered(project string, took time.Duration)
}

// Options of a Service. The zero value works.
type Options struct {
	// Memory bounds the output of shells that is remembered; nil: one of its own.
	Memory  *budget.Budget
	Metrics *Metrics     // nil: none
	Logger  *slog.Logger // nil: discard
	// Checkpoint is as in engine.Options.
	Checkpoint func(name string)
}

// Service is the verbs of contexts and shells. All its methods are safe for concurrent use.
type Service struct {
	engine     Engine
	store      store.Store
	memory     *budget.Budget
	metrics    *Metrics
	log        *slog.Logger
	checkpoint func(string)
}

// What a use of a sandbox is, in a word for people.
const (
	useCode  = "code"
	useShell = "a shell"
)

// New returns the service of an engine, which it extends. It is called before the engine's Run.
func New(e Engine, o Options) *Service {
	s := &Service{engine: e, store: e.Store(), memory: o.Memory, metrics: o.Metrics, log: o.Logger, checkpoint: o.Checkpoint}
	if s.memory == nil {
		s.memory = budget.New(budget.Options{})
	}
	if s.metrics == nil {
		s.metrics = NewMetrics(nil)
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.checkpoint == nil {
		s.checkpoint = func(string) {}
	}
	e.Extend(extension{s})
	return s
}

// Metrics are the figures of cells. No label holds what a caller can fill.
type Metrics struct {
	cells   *prometheus.CounterVec
	seconds prometheus.Histogram
}

// NewMetrics makes the collectors and registers them on reg; nil registers none.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	fast := []float64{.0005, .001, .002, .004, .008, .016, .032, .064, .128, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	m := &Metrics{
		cells: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sandpit_code_cells_total", Help: "Cells of code that ended."}, []string{"language", "status"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sandpit_code_seconds", Help: "From a cell's request to its answer.", Buckets: fast}),
	}
	if reg != nil {
		reg.MustRegister(m.cells, m.seconds)
	}
	return m
}
