// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the figures of runs. No label holds what a caller can fill.
type Metrics struct {
	active prometheus.Gauge
	ended  *prometheus.CounterVec
}

// NewMetrics returns the collectors, registered on reg; nil registers none.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		active: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "mcp_active_runs", Help: "Runs that have not ended."}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_runs_total", Help: "Runs that ended."}, []string{"status"}),
	}
	for _, status := range []string{"completed", "failed"} {
		m.ended.WithLabelValues(status)
	}
	if reg != nil {
		reg.MustRegister(m.active, m.ended)
	}
	return m
}
