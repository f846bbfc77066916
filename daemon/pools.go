// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/sandbox"
)

// pools returns the pools in the engine's form. The engine checks them.
func (c *Config) pools() ([]prewarm.Pool, error) { return c.poolsOf(c.Pools) }

// poolsOf is pools of a list.
func (c *Config) poolsOf(list []PoolConfig) ([]prewarm.Pool, error) {
	out := make([]prewarm.Pool, len(list))
	for n, p := range list {
		p, err := c.ofTemplate(p)
		if err != nil {
			return nil, err
		}
		limits, err := c.sized("pools", p.Size, p.limits())
		if err != nil {
			return nil, err
		}
		out[n] = prewarm.Pool{Name: p.Name, Image: p.Image, Template: p.Template, Min: p.Min, Max: p.Max, Refill: p.Refill, Limits: limits}
	}
	return out, nil
}

func (p PoolConfig) limits() sandbox.Limits {
	return sandbox.Limits{CPU: p.CPU, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB, Pids: p.Pids}
}
