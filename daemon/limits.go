// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// most returns what sandboxes may ask for on a host with so much.
func (c *Config) most(cores float64, memoryMB int) sandbox.Limits {
	m, d := c.Ceilings.Max, c.Limits()
	return sandbox.Limits{CPU: m.CPU, MemoryMB: m.MemoryMB, DiskMB: m.DiskMB, Pids: m.Pids}.Or(sandbox.Limits{
		CPU:      min(max(cores, d.CPU), sandbox.MaxCPU),
		MemoryMB: min(max(memoryMB*4/5, d.MemoryMB), sandbox.MaxMemoryMB),
	}).Or(sandbox.MaxLimits())
}

// hostMost returns most of this host.
func (c *Config) hostMost() (sandbox.Limits, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return sandbox.Limits{}, fmt.Errorf("ask how much memory the host has: %w", err)
	}
	return c.most(float64(runtime.NumCPU()), int(info.Totalram*uint64(info.Unit)>>20)), nil
}

// SizeConfig is a [sandbox.Size]; an empty one removes that of its name.
type SizeConfig struct {
	CPU      float64 `yaml:"cpu_cores"`
	MemoryMB int     `yaml:"memory_mb"`
}

// sizes returns the table of sizes, the smallest first.
func (c *Config) sizes() sandbox.Sizes {
	all := slices.DeleteFunc(sandbox.DefaultSizes(), func(s sandbox.Size) bool {
		_, other := c.Sizes[s.Name]
		return other
	})
	for name, s := range c.Sizes {
		if s != (SizeConfig{}) {
			all = append(all, sandbox.Size{Name: name, CPU: s.CPU, MemoryMB: s.MemoryMB})
		}
	}
	slices.SortFunc(all, func(a, b sandbox.Size) int {
		return cmp.Or(cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.MemoryMB, b.MemoryMB), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// sized returns limits with what a size says where they say nothing; the error is about field.
func (c *Config) sized(field, size string, l sandbox.Limits) (sandbox.Limits, error) {
	l, err := c.sizes().Fill(size, l)
	if err != nil {
		return l, fault.InvalidField(field+".size", "%s", fault.As(err).Fields[0].Message)
	}
	return l, nil
}

// checkSized checks the sizes that templates and pools name.
func (c *Config) checkSized() error {
	for _, name := range slices.Sorted(maps.Keys(c.Templates)) {
		if _, err := c.sized("templates."+sandbox.Clip(name, 40), c.Templates[name].Size, sandbox.Limits{}); err != nil {
			return err
		}
	}
	for _, p := range c.Pools {
		if _, err := c.sized("pools", p.Size, sandbox.Limits{}); err != nil {
			return err
		}
	}
	return nil
}

// checkLimits checks the defaults and the sizes, and that the maximum is not below the defaults.
func (c *Config) checkLimits() error {
	if err := c.Limits().Check(); err != nil {
		return err
	}
	if err := c.sizes().Check("sizes"); err != nil {
		return err
	}
	if err := c.checkSized(); err != nil {
		return err
	}
	most := c.most(sandbox.MaxCPU, sandbox.MaxMemoryMB)
	if err := most.Check(); err != nil {
		return fault.Wrap(fault.Invalid, err, "limits.max: %s", fault.As(err).Message)
	}
	if err := c.Limits().CheckUpTo(most); err != nil {
		return fault.Wrap(fault.Invalid, err, "defaults: %s, by limits.max", fault.As(err).Message).
			WithRemedy("raise limits.max, or lower defaults")
	}
	return nil
}

// Limits are the default limits of a sandbox.
func (c *Config) Limits() sandbox.Limits {
	return sandbox.Limits{CPU: c.Defaults.CPU, MemoryMB: c.Defaults.MemoryMB, DiskMB: c.Defaults.DiskMB, Pids: c.Defaults.Pids}
}
