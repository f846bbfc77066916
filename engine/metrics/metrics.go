// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics has the figures of an engine, as Prometheus reads them. It knows no verb.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/engine/recent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Metrics are the engine's figures. No label holds what a caller can fill.
type Metrics struct {
	reg    prometheus.Registerer // nil: nothing is registered
	recent *recent.Log

	active         prometheus.Gauge
	commands       *prometheus.CounterVec
	commandSeconds prometheus.Histogram
	Reaped         prometheus.Counter

	sandboxes     *prometheus.GaugeVec
	Unresponsive  prometheus.Gauge
	createSeconds prometheus.Histogram
	execSeconds   prometheus.Histogram
	events        *prometheus.CounterVec

	poolReady      *prometheus.GaugeVec
	poolClaims     *prometheus.CounterVec
	JanitorRounds  prometheus.Counter
	JanitorRemoved *prometheus.CounterVec
	JanitorForeign prometheus.Counter
	EventsPruned   prometheus.Counter
}

// New makes the collectors and registers them on reg; nil registers none.
func New(reg prometheus.Registerer) *Metrics {
	fast := []float64{.0005, .001, .002, .004, .008, .016, .032, .064, .128, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	m := &Metrics{
		reg: reg, recent: recent.New(nil),
		active: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "mcp_active_sandboxes", Help: "Sandboxes that are running."}),
		commands: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_commands_total", Help: "Commands that ended."}, []string{"status"}),
		commandSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "mcp_command_duration_seconds", Help: "How long commands ran.", Buckets: prometheus.DefBuckets}),
		Reaped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mcp_reaper_deletes_total", Help: "Sandboxes that a clock deleted."}),
		sandboxes: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sandpit_sandboxes", Help: "Sandboxes by state."}, []string{"state"}),
		Unresponsive: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sandpit_sandboxes_unresponsive", Help: "Running sandboxes whose process 1 does not answer."}),
		createSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sandpit_create_seconds", Help: "From a create's request to a sandbox that runs.", Buckets: fast}),
		execSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sandpit_exec_seconds", Help: "From a command's request to its answer.", Buckets: fast}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sandpit_events_total", Help: "Events by type."}, []string{"type"}),
	}
	m.poolReady = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sandpit_pool_ready", Help: "Sandboxes of a pool that wait for a create."}, []string{"pool"})
	m.poolClaims = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sandpit_pool_claims_total", Help: "Creates that a pool fits, by whether it had a sandbox ready."}, []string{"pool", "result"})
	m.JanitorRounds = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "sandpit_janitor_rounds_total", Help: "Times that all that the runtimes keep was compared with the records."})
	m.JanitorRemoved = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sandpit_janitor_removed_total", Help: "What no record owned and was removed, by kind."}, []string{"kind"})
	m.JanitorForeign = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "sandpit_janitor_foreign_total", Help: "What is another store's and was left alone."})
	m.EventsPruned = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "sandpit_events_pruned_total", Help: "Events that were deleted since they were too old, or too many."})
	for _, status := range []string{"completed", "failed", "timed_out"} {
		m.commands.WithLabelValues(status)
	}
	for _, s := range sandbox.States() {
		if s != sandbox.Deleted {
			m.sandboxes.WithLabelValues(string(s))
		}
	}
	if reg != nil {
		reg.MustRegister(m.active, m.commands, m.commandSeconds, m.Reaped,
			m.sandboxes, m.Unresponsive, m.createSeconds, m.execSeconds, m.events,
			m.poolReady, m.poolClaims, m.JanitorRounds, m.JanitorRemoved, m.JanitorForeign, m.EventsPruned)
	}
	return m
}

// Disk registers the figures of the disk that all sandboxes of a runtime share.
func (m *Metrics) Disk(name string, d runtime.DiskReporter) {
	if m.reg == nil {
		return
	}
	for _, g := range []struct {
		name, help string
		read       func(runtime.Disk) float64
	}{
		{"sandpit_store_size_bytes", "Size of the disk that all sandboxes share.", func(d runtime.Disk) float64 { return float64(d.SizeBytes) }},
		{"sandpit_store_free_bytes", "What is free of it, its reserve included.", func(d runtime.Disk) float64 { return float64(d.FreeBytes) }},
		{"sandpit_store_room_bytes", "What sandboxes may still take together, of that disk and of the host's.", func(d runtime.Disk) float64 { return float64(d.RoomBytes) }},
		{"sandpit_host_free_bytes", "What is free of the host's disk, on which the data directory is.", func(d runtime.Disk) float64 { return float64(d.HostFreeBytes) }},
		{"sandpit_store_full", "1 while nothing new is begun, since that disk or the host's is full.", func(d runtime.Disk) float64 { return flag(d.Full) }},
		{"sandpit_store_failed", "1 while that disk cannot be used at all.", func(d runtime.Disk) float64 { return flag(d.Failed) }},
	} {
		m.reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: g.name, Help: g.help, ConstLabels: prometheus.Labels{"runtime": name},
		}, func() float64 { return g.read(d.Disk()) }))
	}
}

func flag(err error) float64 {
	if err != nil {
		return 1
	}
	return 0
}

// Pool is the figures of one pool.
type Pool struct {
	Ready        prometheus.Gauge
	Hits, Misses prometheus.Counter
}

// Pool returns the figures of one pool, whose name is the configuration's.
func (m *Metrics) Pool(name string) Pool {
	return Pool{
		Ready: m.poolReady.WithLabelValues(name),
		Hits:  m.poolClaims.WithLabelValues(name, "hit"), Misses: m.poolClaims.WithLabelValues(name, "miss"),
	}
}

// Moved counts a sandbox from one state to another; "" is from or to nowhere.
func (m *Metrics) Moved(from, to sandbox.State) {
	if from == to {
		return
	}
	if from != "" {
		m.sandboxes.WithLabelValues(string(from)).Dec()
	}
	if to != "" {
		m.sandboxes.WithLabelValues(string(to)).Inc()
	}
	if from == sandbox.Running {
		m.active.Dec()
	}
	if to == sandbox.Running {
		m.active.Inc()
	}
}

// Found counts the sandboxes of an earlier server.
func (m *Metrics) Found(counts map[sandbox.State]int) {
	for s, n := range counts {
		m.sandboxes.WithLabelValues(string(s)).Add(float64(n))
	}
	m.active.Add(float64(counts[sandbox.Running]))
}

// Happened counts events that were committed.
func (m *Metrics) Happened(events []*sandbox.Event) {
	for _, ev := range events {
		m.events.WithLabelValues(string(ev.Type)).Inc()
	}
}

// Recent returns what is counted of the last hour.
func (m *Metrics) Recent() *recent.Log { return m.recent }

// Created counts a sandbox that was made for a caller, and how long that took.
func (m *Metrics) Created(project string, took time.Duration) {
	m.createSeconds.Observe(took.Seconds())
	m.recent.Done(recent.Create, project, took)
}

// NotCreated counts a create that failed.
func (m *Metrics) NotCreated(project string, err error) {
	m.recent.Failed(recent.Create, project, string(fault.Of(err)))
}

// Answered counts how long a command took, from its request to its answer.
func (m *Metrics) Answered(project string, took time.Duration) {
	m.execSeconds.Observe(took.Seconds())
	m.recent.Ran(project, took)
}

// NotBegun counts a command that did not begin.
func (m *Metrics) NotBegun(project string, err error) {
	m.recent.Failed(recent.Command, project, string(fault.Of(err)))
}

// Refused counts a connection, or a question for a name, that a sandbox's network did not let through.
func (m *Metrics) Refused(project string) { m.recent.Refused(project) }

// Ran counts a command that ended, where ev tells of one and not of a terminal.
func (m *Metrics) Ran(ev *sandbox.Event, r *sandbox.Result) {
	if ev.Type != sandbox.EventExec {
		return
	}
	status, cause := "completed", string(r.Cause)
	switch {
	case r.Cause == sandbox.CauseTimeout:
		status = "timed_out"
	case r.ExitCode != 0:
		status = "failed"
		if cause == "" {
			cause = recent.ExitCause
		}
	}
	m.recent.Ended(ev.Project, cause)
	m.commands.WithLabelValues(status).Inc()
	m.commandSeconds.Observe(r.Duration.Seconds())
}
