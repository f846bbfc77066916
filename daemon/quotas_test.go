// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"runtime"
	"strings"
	"testing"

	"sandpit.dev/access/project"
	"sandpit.dev/fault"
)

func TestQuotasOfTheConfiguration(t *testing.T) {
	for field, change := range map[string]func(*Promises){
		"quotas":                           func(c *Promises) { c.Quotas = map[string]float64{"cpus": 1} },
		"quotas.sandboxes":                 func(c *Promises) { c.Quotas = map[string]float64{"sandboxes": 0.5} },
		"overcommit.cpu_cores":             func(c *Promises) { c.Overcommit.CPU = -1 },
		"overcommit.in_use.memory_percent": func(c *Promises) { c.Overcommit.InUse.MemoryPercent = 101 },
		"overcommit.in_use.load_per_core":  func(c *Promises) { c.Overcommit.InUse.LoadPerCore = -1 },
		"overcommit.disk_mb":               func(c *Promises) { c.Overcommit.Disk = 1e5 },
	} {
		var c Promises
		change(&c)
		if err := c.check(); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
	c := DefaultConfig().Promises
	if err := c.check(); err != nil {
		t.Error(err)
	}
	// 4,000 idle sandboxes of the default size fit on a disk of 40 GiB.
	if a, err := c.promised(func() int64 { return 40 << 30 }); err != nil || a != (project.Amounts{project.Disk: 4000 << 10}) {
		t.Errorf("as shipped all together are promised at most %v, %v", a, err)
	}
	if a, err := c.promised(func() int64 { return 0 }); err != nil || a != (project.Amounts{}) {
		t.Errorf("as shipped, where the size of the disk is not known: %v, %v", a, err)
	}
	c.Overcommit = OvercommitConfig{CPU: 4, Memory: 0.5, Disk: 2}
	a, err := c.promised(func() int64 { return 10<<20 + 7 })
	if err != nil || a[project.CPU] != 4*float64(runtime.NumCPU()) || a[project.Disk] != 20 || a[project.Memory] < 16 || a[project.Running] != 0 {
		t.Errorf("got %v, %v", a, err)
	}
	if _, err := c.promised(func() int64 { return 0 }); !fault.Is(err, fault.Invalid) {
		t.Errorf("without a disk of a known size: got %v", err)
	}
}
