// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/update"
	"sandpit.dev/sandbox"
)

// patch makes the engine's patch out of all spellings of an update.
func patch(sp *httpapi.Spellings, b *v1.UpdateSandbox, sizes sandbox.Sizes) (update.Patch, error) {
	var p update.Patch
	p.Key = httpapi.Either(sp, "key", b.Key, "session_key", b.SessionKey)
	if env := httpapi.EitherMap(sp, "env", b.Env, "env_vars", b.EnvVars); env != nil {
		p.Env = &env
	}
	p.EnvSet, p.EnvUnset, p.ExtendTo = b.EnvSet, b.EnvUnset, b.ExtendTo
	if b.Metadata != nil {
		p.Metadata = &b.Metadata
	}
	cpu, memory := size(sp, sizes, b.Size, httpapi.Either(sp, "cpu_cores", b.CPUCores, "cpu", b.CPU), b.MemoryMB)
	limits(sp, cpu, memory, b.DiskMB, b.Pids)
	p.CPU, p.MemoryMB, p.DiskMB, p.Pids = cpu, memory, b.DiskMB, b.Pids
	p.IdleTimeout = clock(sp, "idle_timeout_seconds", b.IdleTimeoutSeconds, 0)
	p.Retention = clock(sp, "retention_seconds", b.RetentionSeconds, 0)
	p.ArchiveAfter = clock(sp, "archive_after_seconds", b.ArchiveAfterSeconds, 0)
	p.OnIdle, p.OnExpiry, p.Checkpoints = idleAction(sp, b.IdleAction), onExpiry(sp, b.OnExpiry), checkpoints(sp, b.Checkpoints)
	p.AutoDelete, p.AutoStart, p.AutoResume, p.Sudo = b.AutoDelete, b.AutoStart, b.AutoResume, b.Sudo
	p.TTL, p.SlidingTTL = lifetimes(sp, b.TTLSeconds, b.TimeoutSeconds, b.TTLMode, true)
	if b.Volumes != nil {
		p.Mounts = new(mounts(sp, b.Volumes))
	}
	p.Network = networkWords{b.Network, b.NetworkEnabled, b.NetworkBlockAll, b.NetworkAllowList, b.DomainAllowList}.read(sp)
	return p, sp.Err()
}
