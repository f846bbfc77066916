// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"math"
	"slices"
	"time"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine/meter"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// metrics are the figures over time that clients ask for by name, each of a sample. What is not counted is negative: none
// tells how much of the memory in use is cache.
var metrics = []struct {
	name string
	of   func(sandbox.Limits, meter.Sample) float64
}{
	{"daytona.sandbox.cpu.utilization", func(l sandbox.Limits, s meter.Sample) float64 {
		if s.CPUs < 0 || l.CPU <= 0 {
			return -1
		}
		return 100 * s.CPUs / l.CPU
	}},
	{"daytona.sandbox.cpu.limit", func(l sandbox.Limits, _ meter.Sample) float64 { return math.Ceil(l.CPU) }},
	{"daytona.sandbox.memory.usage", func(_ sandbox.Limits, s meter.Sample) float64 { return float64(s.MemoryBytes) }},
	{"daytona.sandbox.memory.limit", func(l sandbox.Limits, _ meter.Sample) float64 { return float64(int64(l.MemoryMB) << 20) }},
	{"daytona.sandbox.filesystem.usage", func(_ sandbox.Limits, s meter.Sample) float64 { return float64(s.DiskBytes) }},
	{"daytona.sandbox.filesystem.total", func(l sandbox.Limits, _ meter.Sample) float64 { return float64(int64(l.DiskMB) << 20) }},
}

type metricsOf struct {
	Ref   string   `path:"id"`
	From  *string  `query:"from"`
	To    *string  `query:"to"`
	Names []string `query:"metricNames"`
}

// maxMetricNames bounds how many names are asked for at once.
const maxMetricNames = 100

// sandboxMetrics answers with what a sandbox used, by the minute, and now: what the server has of the time that is asked
// for. It does not count as a use of the sandbox.
func (a *API) sandboxMetrics(ctx context.Context, c *httpapi.Call, in *metricsOf) (wire.MetricSeries, error) {
	out := wire.MetricSeries{Series: []wire.Series{}}
	from, err := instant("from", in.From, time.Time{})
	if err != nil {
		return out, err
	}
	to, err := instant("to", in.To, time.Now())
	switch {
	case err != nil:
		return out, err
	case to.Before(from):
		return out, fault.InvalidField("to", "%s is before from, %s", to.Format(time.RFC3339), from.Format(time.RFC3339))
	case len(in.Names) > maxMetricNames:
		return out, fault.InvalidField("metricNames", "%d names are more than %d", len(in.Names), maxMetricNames)
	case a.Stats == nil:
		return out, fault.New(fault.Unsupported, "this server does not count what sandboxes use")
	}
	s, err := a.Stats.Stats(ctx, c.Caller, in.Ref)
	if err != nil {
		return out, inTheirNames(err)
	}
	var samples []meter.Sample
	for _, one := range s.History { // of the minute that begins at its time
		if one.At.Add(time.Minute).After(from) && !one.At.After(to) {
			samples = append(samples, one)
		}
	}
	// A client that asks until now has its own clock, and asked a moment ago.
	if u := s.Now; u != nil && u.At.After(from) && !u.At.After(to.Add(time.Second)) {
		samples = append(samples, *u)
	}
	for _, m := range metrics {
		if len(in.Names) > 0 && !slices.Contains(in.Names, m.name) {
			continue
		}
		one := wire.Series{Name: m.name}
		for _, u := range samples {
			if v := m.of(s.Sandbox.Limits, u); v >= 0 {
				one.Points = append(one.Points, wire.Point{Timestamp: u.At.UTC(), Value: v})
			}
		}
		if len(one.Points) > 0 {
			out.Series = append(out.Series, one)
		}
	}
	return out, nil
}

// instant reads a time as clients write them: with a zone, as Python writes that, too, or without one in UTC.
func instant(field string, given *string, otherwise time.Time) (time.Time, error) {
	if given == nil || *given == "" {
		return otherwise, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999-0700", "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, *given); err == nil {
			return t, nil
		}
	}
	return otherwise, fault.InvalidField(field, "%q is not a valid time; write it as 2026-01-31T12:00:00Z", sandbox.Clip(*given, 40))
}
