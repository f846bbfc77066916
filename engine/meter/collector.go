// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// maxProjects is how many projects Prometheus is told of by name; the others are one.
const maxProjects = 100

// otherProjects is their name, which no project can have.
const otherProjects = "_other"

// Collector returns what projects use, as the last round found it, for Prometheus. A scrape reads nothing.
func (s *Service) Collector() prometheus.Collector { return collector{s} }

type collector struct{ s *Service }

// perProject are the figures of a project.
var perProject = []struct {
	desc *prometheus.Desc
	of   func(Sum) float64 // negative: not counted
}{
	{projectDesc("sandboxes_up", "Sandboxes that run or are paused, whose use was read in the last minute."), func(s Sum) float64 { return float64(s.Sandboxes) }},
	{projectDesc("cpus", "Processors that its sandboxes use."), func(s Sum) float64 { return s.CPUs }},
	{projectDesc("memory_bytes", "Memory that they use."), func(s Sum) float64 { return float64(s.MemoryBytes) }},
	{projectDesc("disk_bytes", "What those that are up wrote to their disks."), func(s Sum) float64 { return float64(s.DiskBytes) }},
	{projectDesc("network_in_bytes_per_second", "What they got from other hosts, over the last minute."), func(s Sum) float64 { return s.Network.InRate }},
	{projectDesc("network_out_bytes_per_second", "What they sent to other hosts, over the last minute."), func(s Sum) float64 { return s.Network.OutRate }},
	{projectDesc("tasks", "Processes and threads in them."), func(s Sum) float64 { return float64(s.Tasks) }},
}

func projectDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("sandpit_project_"+name, help, []string{"project"}, nil)
}

func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range perProject {
		ch <- f.desc
	}
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	c.s.mu.Lock()
	sums := c.s.sums // which nobody changes
	c.s.mu.Unlock()
	for name, sum := range fewest(sums) {
		for _, f := range perProject {
			if v := f.of(sum); v >= 0 {
				ch <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, v, name)
			}
		}
	}
}

// fewest returns the sums of the projects with the most sandboxes, and one of all others.
func fewest(sums map[string]Sum) map[string]Sum {
	if len(sums) <= maxProjects {
		return sums
	}
	names := slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b].Sandboxes, sums[a].Sandboxes), cmp.Compare(a, b))
	})
	out := make(map[string]Sum, maxProjects+1)
	for _, name := range names[:maxProjects] {
		out[name] = sums[name]
	}
	var rest Sum
	for n, name := range names[maxProjects:] {
		sum := sums[name]
		if n == 0 {
			rest = sum
			continue
		}
		rest.Sandboxes += sum.Sandboxes
		rest.Sample = rest.plus(sum.Sample)
	}
	out[otherProjects] = rest
	return out
}
