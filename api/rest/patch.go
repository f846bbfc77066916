// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
)

// patch makes the engine's patch out of all spellings of an update.
func patch(sp *spellings, b *v1.UpdateSandbox) (engine.Patch, error) {
	var p engine.Patch
	if env := eitherMap(sp, "env", b.Env, "env_vars", b.EnvVars); env != nil {
		p.Env = &env
	}
	if b.Metadata != nil {
		p.Metadata = &b.Metadata
	}
	cpu := either(sp, "cpu_cores", b.CPUCores, "cpu", b.CPU)
	limits(sp, cpu, b.MemoryMB, b.DiskMB, b.Pids)
	p.CPU, p.MemoryMB, p.DiskMB, p.Pids = cpu, b.MemoryMB, b.DiskMB, b.Pids
	p.IdleTimeout = clock(sp, "idle_timeout_seconds", b.IdleTimeoutSeconds, 0)
	p.Retention = clock(sp, "retention_seconds", b.RetentionSeconds, 0)
	ttl := either(sp, "ttl_seconds", b.TTLSeconds, "timeout_seconds", b.TimeoutSeconds)
	least := int64(minTTL)
	if ttl != nil && *ttl == 0 {
		least = 0 // never
	}
	p.TTL = clock(sp, "ttl_seconds", ttl, least)
	if mode := network(sp, b.Network, b.NetworkEnabled); mode != "" && mode != "off" {
		return p, noNetwork(sp.name("network"))
	}
	return p, sp.err()
}
