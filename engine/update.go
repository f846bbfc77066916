// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Patch is what shall change of a sandbox; nil fields stay. Env and limits can
// change only while it is stopped, the rest at any time.
type Patch struct {
	Env         *map[string]string // the whole of it
	Metadata    *map[string]string // likewise
	IdleTimeout *time.Duration     // zero: never
	Retention   *time.Duration     // likewise
	TTL         *time.Duration     // from at; zero: never. At most one of it and
	ExpiresAt   *time.Time         // the same as a time; zero: never
	CPU         *float64
	MemoryMB    *int
	DiskMB      *int // fault.Unsupported unless it is what it is already
	Pids        *int
}

// Update changes a sandbox's record. Env and limits take effect at its next
// start, the clocks at once.
func (e *Engine) Update(ctx context.Context, c access.Caller, ref string, p Patch) (*sandbox.Sandbox, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return e.verb(ctx, c, ref, updateBound, func(ctx context.Context, b *box) error {
		return e.update(ctx, b, askerOf(c), p)
	})
}

func (p Patch) check() error {
	var k check
	if p.Env != nil {
		k.env(*p.Env)
	}
	if p.Metadata != nil {
		k.metadata("metadata", *p.Metadata)
	}
	for field, d := range map[string]*time.Duration{
		"idle_timeout_seconds": p.IdleTimeout, "retention_seconds": p.Retention, "ttl_seconds": p.TTL,
	} {
		if d != nil {
			k.clock(field, *d)
		}
	}
	if p.ExpiresAt != nil && !p.ExpiresAt.IsZero() {
		switch d := time.Until(*p.ExpiresAt); {
		case p.TTL != nil:
			k.bad("expires_at", "is given beside ttl_seconds; give one of them")
		case d < 0 || d > sandbox.MaxClock:
			k.bad("expires_at", "%s is not within the next %s seconds", p.ExpiresAt.UTC().Format(time.RFC3339), seconds(sandbox.MaxClock))
		}
	}
	k.limits(p.limits(sandbox.DefaultLimits()))
	return k.err()
}

// limits are l with what p changes of them.
func (p Patch) limits(l sandbox.Limits) sandbox.Limits {
	set(&l.CPU, p.CPU)
	set(&l.MemoryMB, p.MemoryMB)
	set(&l.DiskMB, p.DiskMB)
	set(&l.Pids, p.Pids)
	return l
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// fields names what p changes of s.
func (p Patch) fields(s *sandbox.Sandbox) (all, stopped []string) {
	for _, f := range []struct {
		name    string
		changes bool
		stopped bool
	}{
		{"env", p.Env != nil && !maps.Equal(*p.Env, s.Env), true},
		{"cpu_cores", p.CPU != nil && *p.CPU != s.Limits.CPU, true},
		{"memory_mb", p.MemoryMB != nil && *p.MemoryMB != s.Limits.MemoryMB, true},
		{"pids", p.Pids != nil && *p.Pids != s.Limits.Pids, true},
		{"metadata", p.Metadata != nil && !maps.Equal(*p.Metadata, s.Metadata), false},
		{"idle_timeout_seconds", p.IdleTimeout != nil && *p.IdleTimeout != s.IdleTimeout, false},
		{"retention_seconds", p.Retention != nil && *p.Retention != s.Retention, false},
		{"ttl_seconds", p.TTL != nil, false},
		{"expires_at", p.ExpiresAt != nil && !p.ExpiresAt.Equal(s.ExpiresAt), false},
	} {
		if f.changes {
			all = append(all, f.name)
			if f.stopped {
				stopped = append(stopped, f.name)
			}
		}
	}
	return all, stopped
}

// update has no intent: there is nothing to do but the one commit.
func (e *Engine) update(ctx context.Context, b *box, who asker, p Patch) error {
	s := b.record.Load()
	if p.DiskMB != nil && *p.DiskMB != s.Limits.DiskMB {
		return fault.New(fault.Unsupported, "disk_mb: the disk of a sandbox keeps the size that it was made with, %d MiB", s.Limits.DiskMB).
			WithRemedy("create a new sandbox with disk_mb %d and copy the files", *p.DiskMB)
	}
	all, stopped := p.fields(s)
	if len(all) == 0 {
		return nil
	}
	if len(stopped) > 0 && s.State != sandbox.Stopped {
		return fault.New(fault.State, "%s can change only while the sandbox is stopped; %s is %s",
			strings.Join(stopped, ", "), s.Ref(), s.State).
			WithRemedy("stop it (stop %s), change it, and start it again", s.Ref())
	}
	at := now()
	ev := who.event(sandbox.EventUpdated, s, at)
	ev.Detail = "changed " + strings.Join(all, ", ") // names only: values may be secrets
	err := e.commit(ctx, b, func(s *sandbox.Sandbox) {
		s.UpdatedAt = at
		s.Limits = p.limits(s.Limits)
		if p.Env != nil {
			s.Env = maps.Clone(*p.Env)
		}
		if p.Metadata != nil {
			s.Metadata = maps.Clone(*p.Metadata)
		}
		set(&s.IdleTimeout, p.IdleTimeout)
		set(&s.Retention, p.Retention)
		set(&s.ExpiresAt, p.ExpiresAt)
		if p.TTL != nil {
			s.ExpiresAt = time.Time{}
			if *p.TTL > 0 {
				s.ExpiresAt = at.Add(*p.TTL)
			}
		}
	}, ev)
	if err != nil {
		return err
	}
	e.checkpoint("update.outcome")
	e.plan(b)
	return nil
}
