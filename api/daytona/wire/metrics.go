// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// Metrics is what a sandbox uses now. What is not known is left out.
type Metrics struct {
	CPUCount   int       `json:"cpuCount"`
	CPUUsedPct *float64  `json:"cpuUsedPct,omitempty"` // of all of its processors
	MemTotal   int64     `json:"memTotal"`             // bytes, as all below
	MemUsed    *int64    `json:"memUsed,omitempty"`
	DiskTotal  int64     `json:"diskTotal"`
	DiskUsed   *int64    `json:"diskUsed,omitempty"`
	DiskFree   *int64    `json:"diskFree,omitempty"`
	Timestamp  time.Time `json:"timestamp"`
}

// MetricSeries is what a sandbox used over time.
type MetricSeries struct {
	Series []Series `json:"series"`
}

// Series is one figure over time.
type Series struct {
	Name   string  `json:"metricName"`
	Points []Point `json:"dataPoints"`
}

// Point is one figure at one time.
type Point struct {
	Timestamp time.Time `json:"timestamp"`
	Value     float64   `json:"value"`
}

// Ports are those on which programs listen.
type Ports struct {
	Ports []int `json:"ports"`
}

// PortInUse reports whether a program listens on one.
type PortInUse struct {
	IsInUse bool `json:"isInUse"`
}
