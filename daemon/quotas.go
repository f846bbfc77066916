// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime"

	"golang.org/x/sys/unix"

	"sandpit.dev/access"
	"sandpit.dev/access/project"
	"sandpit.dev/fault"
	"sandpit.dev/linux/inuse"
	driver "sandpit.dev/runtime"
	"sandpit.dev/store"
	"sandpit.dev/store/quota"
)

// Promises is what projects may have.
type Promises struct {
	// Quotas are those of a project that is made without being given any, by the resource's name.
	Quotas     map[string]float64 `yaml:"quotas"`
	Overcommit OvercommitConfig   `yaml:"overcommit"`
}

// OvercommitConfig is how many times what the host has all sandboxes together may be promised: running ones of
// cores and memory, all whose disk is here of that. Zero: no bound by promises. InUse bounds memory and processors
// by what is in use instead. New work is refused in any case while a disk is nearly full.
type OvercommitConfig struct {
	CPU    float64     `yaml:"cpu_cores"`
	Memory float64     `yaml:"memory_mb"`
	Disk   float64     `yaml:"disk_mb"`
	InUse  InUseConfig `yaml:"in_use"`
}

// InUseConfig is an [inuse.Bounds].
type InUseConfig struct {
	MemoryPercent float64 `yaml:"memory_percent"`
	LoadPerCore   float64 `yaml:"load_per_core"`
}

// As shipped 4,000 idle sandboxes of the default size are possible: they are promised 4 TB of disk and 2 TB of memory, and
// use next to nothing. Processors are shared fairly, so that only a host which gets nowhere refuses.
const (
	defaultDiskFactor    = 100
	defaultMemoryPercent = 95
	defaultLoadPerCore   = 100
)

// defaultOvercommit is what is configured as shipped.
func defaultOvercommit() OvercommitConfig {
	return OvercommitConfig{Disk: defaultDiskFactor, InUse: InUseConfig{MemoryPercent: defaultMemoryPercent, LoadPerCore: defaultLoadPerCore}}
}

// maxOvercommit is a factor by which nothing is bounded any more.
const maxOvercommit = 10_000

func (c *Promises) check() error {
	for name, v := range map[string]float64{"overcommit.cpu_cores": c.Overcommit.CPU, "overcommit.memory_mb": c.Overcommit.Memory, "overcommit.disk_mb": c.Overcommit.Disk} {
		if math.IsNaN(v) || v < 0 || v > maxOvercommit {
			return fault.InvalidField(name, "%v is outside 0 to %d", v, maxOvercommit).WithRemedy("1 is what the host has, 2 twice that; leave it out for no bound")
		}
	}
	if err := inuse.Bounds(c.Overcommit.InUse).Check("overcommit.in_use"); err != nil {
		return err
	}
	_, err := project.Parse("quotas", c.Quotas)
	return err
}

// openQuotas returns what holds projects to their quotas, and all of them to what the host has.
func (c *Promises) openQuotas(ctx context.Context, db store.Store, drivers map[string]driver.Driver, log *slog.Logger) (*quota.Keeper, error) {
	of, err := project.Parse("quotas", c.Quotas)
	if err != nil {
		return nil, err
	}
	host, err := c.promised(func() int64 { return disksOf(drivers) })
	if err != nil {
		return nil, err
	}
	o := quota.Options{Host: host, New: of}
	if b := inuse.Bounds(c.Overcommit.InUse); b != (inuse.Bounds{}) {
		o.Admit = inuse.New(b, inuse.Options{Logger: log}).Admit
	}
	return quota.Open(ctx, db, o, access.DefaultProject)
}

// promised is the most that all sandboxes together may be promised on this host. disk is asked where it is needed.
func (c *Promises) promised(disk func() int64) (a project.Amounts, err error) {
	a[project.CPU] = c.Overcommit.CPU * float64(runtime.NumCPU())
	if f := c.Overcommit.Memory; f > 0 {
		var info unix.Sysinfo_t
		if err := unix.Sysinfo(&info); err != nil {
			return a, fmt.Errorf("ask how much memory the host has: %w", err)
		}
		a[project.Memory] = math.Floor(f * float64(info.Totalram*uint64(info.Unit)>>20))
	}
	if f := c.Overcommit.Disk; f > 0 {
		bytes := disk()
		if bytes <= 0 && f == defaultDiskFactor {
			return a, nil
		}
		if bytes <= 0 {
			return a, fault.InvalidField("overcommit.disk_mb", "no runtime here says how large the disk of its sandboxes is").WithRemedy("leave it out")
		}
		a[project.Disk] = math.Floor(f * float64(bytes>>20))
	}
	return a, nil
}

// disksOf is how much the places hold together in which drivers keep the disks of sandboxes.
func disksOf(drivers map[string]driver.Driver) (bytes int64) {
	for _, d := range drivers {
		if r, ok := d.(driver.DiskReporter); ok {
			bytes += r.Disk().SizeBytes
		}
	}
	return bytes
}
