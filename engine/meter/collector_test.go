// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/runtime"
)

func TestPrometheusIsToldOfProjectsWithoutAReading(t *testing.T) {
	db, driver, _ := up(t, "p", "q", "q")
	s := New(db, map[string]runtime.Driver{"memory": driver}, Options{})
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(s.Collector())
	if all, err := reg.Gather(); len(all) != 0 || err != nil {
		t.Errorf("before the first round: %v, %v", all, err)
	}
	must(t, s.Round(t.Context()))
	read := driver.read.Load()
	for range 3 {
		all, err := reg.Gather()
		must(t, err)
		got := make(map[string]float64)
		for _, family := range all {
			for _, m := range family.GetMetric() {
				got[family.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
		if got["sandpit_project_sandboxes_up p"] != 1 || got["sandpit_project_sandboxes_up q"] != 2 || got["sandpit_project_tasks q"] != 2 || got["sandpit_project_memory_bytes p"] <= 0 || len(got) != 8 {
			t.Errorf("got %v", got)
		}
	}
	if got := driver.read.Load(); got != read {
		t.Errorf("scrapes read %d times", got-read)
	}
}

func TestPrometheusIsToldOfFewProjects(t *testing.T) {
	s := New(nil, nil, Options{})
	s.sums = make(map[string]Sum)
	for n := range 10_000 {
		sum := nothing(time.Now()).with(Sample{CPUs: 0.5, MemoryBytes: 1, DiskBytes: -1, Tasks: 1, Network: noNetwork})
		sum.Sandboxes = n
		s.sums[fmt.Sprintf("project-%05d", n)] = sum
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(s.Collector())
	all, err := reg.Gather()
	must(t, err)
	names := 0
	for _, family := range all {
		if len(family.GetMetric()) != maxProjects+1 {
			t.Errorf("%s has %d rows", family.GetName(), len(family.GetMetric()))
		}
		for _, m := range family.GetMetric() {
			name, v := m.GetLabel()[0].GetValue(), m.GetGauge().GetValue()
			switch {
			case name == otherProjects && family.GetName() == "sandpit_project_cpus" && v != 0.5*9900,
				name == otherProjects && family.GetName() == "sandpit_project_sandboxes_up" && v != 9899*9900/2,
				name != otherProjects && name < "project-09900":
				t.Errorf("%s of %s is %v", family.GetName(), name, v)
			}
			names++
		}
	}
	if names != 4*(maxProjects+1) { // the disk is not counted
		t.Errorf("got %d rows", names)
	}
}
