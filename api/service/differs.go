// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"maps"
	"slices"
	"strings"

	"sandpit.dev/engine"
	"sandpit.dev/engine/volume"
	"sandpit.dev/sandbox"
)

// Differs returns in what a sandbox that had the key of a create already is not as the create
// asks: the fields by their names in REST. What the create leaves open does not differ, and nor do
// secrets, which are not compared.
func Differs(r *engine.CreateRequest, s *sandbox.Sandbox) []string {
	var all []string
	add := func(name string, differs bool) {
		if differs {
			all = append(all, name)
		}
	}
	add("runtime", r.Runtime != "" && r.Runtime != s.Runtime)
	add("from_snapshot", r.From != "" && !strings.Contains(r.From, "/") && r.From != string(s.Parent)) // a name may have been another's
	add("volumes", r.Mounts != nil && !sameMounts(r.Mounts, s.Mounts))
	add("cpu_cores", r.Limits.CPU != 0 && r.Limits.CPU != s.Limits.CPU)
	add("memory_mb", r.Limits.MemoryMB != 0 && r.Limits.MemoryMB != s.Limits.MemoryMB)
	add("disk_mb", r.Limits.DiskMB != 0 && r.Limits.DiskMB != s.Limits.DiskMB)
	add("pids", r.Limits.Pids != 0 && r.Limits.Pids != s.Limits.Pids)
	add("env", r.Env != nil && !maps.Equal(r.Env, s.Env))
	add("metadata", r.Metadata != nil && !maps.Equal(r.Metadata, s.Metadata))
	if a := r.Account; a != nil {
		full := a.Normal()
		add("account", !full.Same(s.Account))
		add("user", a.As != "" && full.User("") != s.Account.User(""))
	}
	add("network", r.Network != nil && !sameNetwork(r.Network, &s.Network))
	add("idle_timeout_seconds", other(r.IdleTimeout, s.IdleTimeout))
	add("idle_action", other(r.OnIdle, s.OnIdle))
	add("retention_seconds", other(r.Retention, s.Retention))
	add("archive_after_seconds", r.ArchiveAfter != 0 && r.ArchiveAfter != s.ArchiveAfter)
	add("ttl_seconds", r.TTL != 0 && s.ExpiresAt.IsZero() || r.SlidingTTL != 0 && r.SlidingTTL != s.TTL)
	add("on_expiry", other(r.OnExpiry, s.OnExpiry))
	add("auto_delete", other(r.AutoDelete, s.AutoDelete))
	add("auto_start", other(r.AutoStart, s.AutoStart))
	add("auto_resume", other(r.AutoResume, s.AutoResume))
	add("checkpoints", other(r.Checkpoints, s.Checkpoints))
	add("sudo", other(r.Sudo, s.Sudo))
	return all
}

// other reports whether something is asked for, and not what is.
func other[T comparable](asked *T, is T) bool { return asked != nil && *asked != is }

// sameNetwork reports whether a policy that is in force is what is asked for; its names may also
// be there for a preset.
func sameNetwork(asked, is *sandbox.NetworkPolicy) bool {
	if asked.Mode != "" && asked.Mode != is.Mode {
		return false
	}
	own := slices.DeleteFunc(slices.Clone(is.AllowDomains), func(name string) bool {
		return slices.ContainsFunc(is.PresetDomains, func(p sandbox.PresetDomain) bool { return p.Domain == name })
	})
	return sameSet(lower(asked.AllowDomains), own) && sameSet(lower(asked.DenyDomains), is.DenyDomains) && sameSet(asked.DenyCIDRs, is.DenyCIDRs) && sameSet(asked.AllowPresets, is.AllowPresets) && sameSet(asked.AllowCIDRs, is.AllowCIDRs) &&
		(asked.AllowPorts == nil || sameSet(asked.AllowPorts, is.AllowPorts)) && asked.Learn == is.Learn && sameHeaders(asked.Headers, is.Headers)
}

// sameHeaders compares headers that are asked for with normal ones.
func sameHeaders(asked, is sandbox.HostHeaders) bool {
	p, err := sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, Headers: asked}.Normal()
	return err == nil && p.Headers.Equal(is)
}

func lower(names []string) (out []string) {
	for _, name := range names {
		out = append(out, strings.ToLower(name))
	}
	return out
}

func sameMounts(asked []volume.Mount, is []sandbox.Mount) bool {
	return len(asked) == len(is) && !slices.ContainsFunc(asked, func(a volume.Mount) bool {
		return !slices.ContainsFunc(is, func(m sandbox.Mount) bool {
			return (a.Volume == m.Name || a.Volume == string(m.Volume)) && a.Path == m.Path && a.Sub == m.Sub && a.ReadOnly == m.ReadOnly
		})
	})
}

func sameSet[T comparable](a, b []T) bool {
	within := func(a, b []T) bool {
		return !slices.ContainsFunc(a, func(v T) bool { return !slices.Contains(b, v) })
	}
	return within(a, b) && within(b, a)
}
