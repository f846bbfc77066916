// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package update is what shall change of a sandbox: whether that is right, and what it makes of a
// record. It knows no verb, and changes nothing that runs.
package update

import (
	"maps"
	"reflect"
	"time"

	"sandpit.dev/engine/check"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/volume"
	"sandpit.dev/sandbox"
)

// Patch is what shall change of a sandbox; nil fields stay. All can change while it
// runs, where its runtime can do so.
type Patch struct {
	Key          *string
	Env          *map[string]string // the whole of it; of commands begun afterwards
	EnvSet       map[string]string  // variables that are added or changed, where Env is nil
	EnvUnset     []string           // variables that are taken away
	Metadata     *map[string]string // likewise
	IdleTimeout  *time.Duration     // zero: never
	OnIdle       *sandbox.IdleAction
	Retention    *time.Duration // zero: never
	ArchiveAfter *time.Duration // zero: never
	AutoDelete   *bool
	TTL          *time.Duration // from at; zero: never. At most one of it and
	ExpiresAt    *time.Time     // the same as a time; zero: never
	ExtendTo     *time.Time     // not before then; it moves ExpiresAt later, and never earlier
	OnExpiry     *sandbox.ExpiryAction
	SlidingTTL   *time.Duration // without a use; zero: never
	AutoStart    *bool
	AutoResume   *bool
	Checkpoints  *sandbox.Checkpoints
	Sudo         *bool
	CPU          *float64
	MemoryMB     *int
	DiskMB       *int
	Pids         *int
	Network      *sandbox.NetworkPolicy // the whole of it; holds at once, for open connections too
	KeepHeaders  bool                   // Network has no headers, and those that there are stay, but in mode off
	Headers      *sandbox.HostHeaders   // the whole of them, in place of Network's; without a Network in that which there is
	Mounts       *[]volume.Mount        // the whole of it; only while it is stopped

	Bound Bound // of what Network comes to; nil: none

	// Volumes is what Mounts comes to; nil: no change. The engine fills it in.
	Volumes *[]sandbox.Mount
}

// Bound bounds what a sandbox may reach after an update.
type Bound interface {
	// Within is asked when nothing has changed yet. was is what is in force until then, becomes what would be, with
	// all that presets stand for. An error is the update's.
	Within(was, becomes sandbox.NetworkPolicy) error
}

// Check returns fault.Invalid with every wrong field. Limits that the patch leaves out are least, and
// none is above most.
func (p Patch) Check(at time.Time, least, most sandbox.Limits) error {
	var k check.Fields
	if p.Key != nil {
		k.Key(*p.Key)
	}
	if p.Env != nil {
		k.Env(*p.Env)
	}
	k.EnvIn("env_set", p.EnvSet)
	if len(p.EnvUnset) > check.MaxEnv {
		k.Bad("env_unset", "has %d names, more than %d", len(p.EnvUnset), check.MaxEnv)
	} else {
		for _, n := range p.EnvUnset {
			k.EnvName("env_unset", n)
			if _, both := p.EnvSet[n]; both {
				k.Bad("env_unset", "has %s, and so has env_set; it can be one of them", n)
			}
		}
	}
	if p.Env != nil && (p.EnvSet != nil || p.EnvUnset != nil) {
		k.Bad("env", "replaces all variables, and is given beside env_set or env_unset; give one of them")
	}
	if p.Metadata != nil {
		k.Metadata("metadata", *p.Metadata)
	}
	for _, c := range []struct {
		field string
		d     *time.Duration
	}{
		{"idle_timeout_seconds", p.IdleTimeout}, {"retention_seconds", p.Retention}, {"archive_after_seconds", p.ArchiveAfter}, {"ttl_seconds", p.TTL}, {"ttl_seconds", p.SlidingTTL},
	} {
		if c.d != nil {
			k.Clock(c.field, *c.d)
		}
	}
	k.OnIdle(p.OnIdle)
	k.OnExpiry(p.OnExpiry)
	k.Checkpoints(p.Checkpoints)
	if p.ExpiresAt != nil && !p.ExpiresAt.IsZero() {
		switch d := p.ExpiresAt.Sub(at); {
		case p.TTL != nil:
			k.Bad("expires_at", "is given beside ttl_seconds; give one of them")
		case d < 0 || d > sandbox.MaxClock:
			k.Bad("expires_at", "%s is not within the next %s seconds", p.ExpiresAt.UTC().Format(time.RFC3339), check.Seconds(sandbox.MaxClock))
		}
	}
	if p.ExtendTo != nil {
		switch d := p.ExtendTo.Sub(at); {
		case p.TTL != nil || p.ExpiresAt != nil:
			k.Bad("extend_to", "is given beside another time to expire; give one of them")
		case d < 0 || d > sandbox.MaxClock:
			k.Bad("extend_to", "%s is not within the next %s seconds", p.ExtendTo.UTC().Format(time.RFC3339), check.Seconds(sandbox.MaxClock))
		}
	}
	k.Limits(p.Limits(least), most)
	return k.Err()
}

// On returns p with what it says relative to s in absolute terms: EnvSet and EnvUnset as Env, and ExtendTo as
// ExpiresAt, where that is later. The error is fault.Invalid where there would be too many variables.
func (p Patch) On(s *sandbox.Sandbox) (Patch, error) {
	if p.EnvSet != nil || p.EnvUnset != nil {
		env := make(map[string]string, len(s.Env)+len(p.EnvSet))
		maps.Copy(env, s.Env)
		for _, n := range p.EnvUnset {
			delete(env, n)
		}
		maps.Copy(env, p.EnvSet)
		var k check.Fields
		k.EnvIn("env_set", env)
		if err := k.Err(); err != nil {
			return p, err
		}
		p.Env, p.EnvSet, p.EnvUnset = &env, nil, nil
	}
	if p.KeepHeaders && p.Network != nil && (p.Network.Mode == sandbox.NetworkRestricted || p.Network.Mode == sandbox.NetworkOpen) {
		n := *p.Network
		n.Headers = s.Network.Headers
		p.Network = &n
	}
	if p.Headers != nil {
		n := s.Network
		if p.Network != nil {
			n = *p.Network
		}
		n.Headers = *p.Headers
		p.Network, p.Headers = &n, nil
	}
	p.KeepHeaders = false
	if p.ExtendTo != nil {
		if !s.ExpiresAt.IsZero() && p.ExtendTo.After(s.ExpiresAt) {
			p.ExpiresAt = p.ExtendTo
		}
		p.ExtendTo = nil
	}
	return p, nil
}

// Empty reports whether p changes nothing, whatever the record is.
func (p Patch) Empty() bool { return reflect.ValueOf(p).IsZero() }

// Variables are those that p sets.
func (p Patch) Variables() map[string]string {
	if p.Env != nil {
		return *p.Env
	}
	return p.EnvSet
}

// Limits returns l with what p changes of them.
func (p Patch) Limits(l sandbox.Limits) sandbox.Limits {
	Set(&l.CPU, p.CPU)
	Set(&l.MemoryMB, p.MemoryMB)
	Set(&l.DiskMB, p.DiskMB)
	Set(&l.Pids, p.Pids)
	return l
}

// Set sets what is given.
func Set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func differs[T comparable](to *T, from T) bool { return to != nil && *to != from }

// Fields names what p changes of s.
func (p Patch) Fields(s *sandbox.Sandbox) []string {
	var names []string
	for _, f := range []struct {
		name    string
		changes bool
	}{
		{"key", differs(p.Key, s.Key)},
		{"cpu_cores", differs(p.CPU, s.Limits.CPU)},
		{"memory_mb", differs(p.MemoryMB, s.Limits.MemoryMB)},
		{"disk_mb", differs(p.DiskMB, s.Limits.DiskMB)},
		{"pids", differs(p.Pids, s.Limits.Pids)},
		{"env", p.Env != nil && !maps.Equal(*p.Env, s.Env)},
		{"metadata", p.Metadata != nil && !maps.Equal(*p.Metadata, s.Metadata)},
		{"idle_timeout_seconds", differs(p.IdleTimeout, s.IdleTimeout)},
		{"idle_action", differs(p.OnIdle, s.OnIdle)},
		{"retention_seconds", differs(p.Retention, s.Retention)},
		{"archive_after_seconds", differs(p.ArchiveAfter, s.ArchiveAfter)},
		{"auto_delete", differs(p.AutoDelete, s.AutoDelete)},
		{"ttl_seconds", p.TTL != nil || differs(p.SlidingTTL, s.TTL)},
		{"expires_at", p.ExpiresAt != nil && !p.ExpiresAt.Equal(s.ExpiresAt)},
		{"on_expiry", differs(p.OnExpiry, s.OnExpiry)},
		{"auto_start", differs(p.AutoStart, s.AutoStart)},
		{"auto_resume", differs(p.AutoResume, s.AutoResume)},
		{"checkpoints", differs(p.Checkpoints, s.Checkpoints)},
		{"sudo", differs(p.Sudo, s.Sudo)},
		{"network", p.Network != nil && !p.Network.Equal(s.Network)},
		{"mounts", p.Volumes != nil},
	} {
		if f.changes {
			names = append(names, f.name)
		}
	}
	return names
}

// Plain returns what p would have on record in plain text.
func (p Patch) Plain() secrets.Plain {
	o := secrets.Plain{}
	if p.Key != nil {
		o["key"] = []string{*p.Key}
	}
	if p.Env != nil {
		o.Add("env", *p.Env)
	}
	if p.Metadata != nil {
		o.Add("metadata", *p.Metadata)
	}
	if p.Network != nil {
		o["network"] = p.Network.Names()
	}
	return o
}

// Apply makes the changes.
func (p Patch) Apply(s *sandbox.Sandbox, at time.Time) {
	s.UpdatedAt = at
	Set(&s.Key, p.Key)
	s.Limits = p.Limits(s.Limits)
	if p.Env != nil {
		s.Env = maps.Clone(*p.Env)
	}
	if p.Metadata != nil {
		s.Metadata = maps.Clone(*p.Metadata)
	}
	Set(&s.IdleTimeout, p.IdleTimeout)
	Set(&s.OnIdle, p.OnIdle)
	Set(&s.Retention, p.Retention)
	s.RetentionDefault = s.RetentionDefault && p.Retention == nil
	Set(&s.ArchiveAfter, p.ArchiveAfter)
	Set(&s.AutoDelete, p.AutoDelete)
	Set(&s.ExpiresAt, p.ExpiresAt)
	Set(&s.OnExpiry, p.OnExpiry)
	Set(&s.Clocks.TTL, p.SlidingTTL)
	Set(&s.AutoStart, p.AutoStart)
	Set(&s.AutoResume, p.AutoResume)
	Set(&s.Checkpoints, p.Checkpoints)
	Set(&s.Sudo, p.Sudo)
	Set(&s.Mounts, p.Volumes)
	Set(&s.Network, p.Network)
	if p.TTL != nil {
		s.ExpiresAt = time.Time{}
		if *p.TTL > 0 {
			s.ExpiresAt = at.Add(*p.TTL)
		}
	}
}
