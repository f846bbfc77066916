// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Patch is what shall change of a sandbox; nil fields stay. All can change while it
// runs, where its runtime can do so.
type Patch struct {
	Env         *map[string]string // the whole of it; of commands begun afterwards
	Metadata    *map[string]string // likewise
	IdleTimeout *time.Duration     // zero: never
	OnIdle      *sandbox.IdleAction
	Retention   *time.Duration // zero: never
	AutoDelete  *bool
	TTL         *time.Duration // from at; zero: never. At most one of it and
	ExpiresAt   *time.Time     // the same as a time; zero: never
	SlidingTTL  *time.Duration // without a use; zero: never
	AutoStart   *bool
	AutoResume  *bool
	Checkpoints *sandbox.Checkpoints
	CPU         *float64
	MemoryMB    *int
	DiskMB      *int
	Pids        *int
	Network     *sandbox.NetworkPolicy // the whole of it; holds at once, for open connections too
	Mounts      *[]volume.Mount        // the whole of it; only while it is stopped

	mounts *[]sandbox.Mount // what Mounts comes to; nil: no change
}

// Update changes a sandbox's record, and its instance where that is up. A limit that
// its runtime cannot change while it is up is fault.State, and a memory limit under
// what is in use fault.Conflict. All or nothing.
func (e *Engine) Update(ctx context.Context, c access.Caller, ref string, p Patch) (*sandbox.Sandbox, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	if err := p.check(e.now(), e.defaults); err != nil {
		return nil, err
	}
	return e.verb(ctx, c, ref, updateBound, e.takeToWork, func(ctx context.Context, b *entry) error {
		return e.update(ctx, b, core.ActorOf(c), p)
	})
}

func (p Patch) check(at time.Time, d Defaults) error {
	var k check.Fields
	if p.Env != nil {
		k.Env(*p.Env)
	}
	if p.Metadata != nil {
		k.Metadata("metadata", *p.Metadata)
	}
	for _, c := range []struct {
		field string
		d     *time.Duration
	}{
		{"idle_timeout_seconds", p.IdleTimeout}, {"retention_seconds", p.Retention}, {"ttl_seconds", p.TTL}, {"ttl_seconds", p.SlidingTTL},
	} {
		if c.d != nil {
			k.Clock(c.field, *c.d)
		}
	}
	k.OnIdle(p.OnIdle)
	k.Checkpoints(p.Checkpoints)
	if p.ExpiresAt != nil && !p.ExpiresAt.IsZero() {
		switch d := p.ExpiresAt.Sub(at); {
		case p.TTL != nil:
			k.Bad("expires_at", "is given beside ttl_seconds; give one of them")
		case d < 0 || d > sandbox.MaxClock:
			k.Bad("expires_at", "%s is not within the next %s seconds", p.ExpiresAt.UTC().Format(time.RFC3339), check.Seconds(sandbox.MaxClock))
		}
	}
	k.Limits(p.limits(d.Limits), d.Most)
	return k.Err()
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

func differs[T comparable](to *T, from T) bool { return to != nil && *to != from }

// fields names what p changes of s.
func (p Patch) fields(s *sandbox.Sandbox) []string {
	var names []string
	for _, f := range []struct {
		name    string
		changes bool
	}{
		{"cpu_cores", differs(p.CPU, s.Limits.CPU)},
		{"memory_mb", differs(p.MemoryMB, s.Limits.MemoryMB)},
		{"disk_mb", differs(p.DiskMB, s.Limits.DiskMB)},
		{"pids", differs(p.Pids, s.Limits.Pids)},
		{"env", p.Env != nil && !maps.Equal(*p.Env, s.Env)},
		{"metadata", p.Metadata != nil && !maps.Equal(*p.Metadata, s.Metadata)},
		{"idle_timeout_seconds", differs(p.IdleTimeout, s.IdleTimeout)},
		{"idle_action", differs(p.OnIdle, s.OnIdle)},
		{"retention_seconds", differs(p.Retention, s.Retention)},
		{"auto_delete", differs(p.AutoDelete, s.AutoDelete)},
		{"ttl_seconds", p.TTL != nil || differs(p.SlidingTTL, s.TTL)},
		{"expires_at", p.ExpiresAt != nil && !p.ExpiresAt.Equal(s.ExpiresAt)},
		{"auto_start", differs(p.AutoStart, s.AutoStart)},
		{"auto_resume", differs(p.AutoResume, s.AutoResume)},
		{"checkpoints", differs(p.Checkpoints, s.Checkpoints)},
		{"network", p.Network != nil && !p.Network.Equal(s.Network)},
		{"mounts", p.mounts != nil},
	} {
		if f.changes {
			names = append(names, f.name)
		}
	}
	return names
}

// update has no intent: what an instance was given and the record does not say, after
// a crash or a commit that failed, is taken back by making it fit the record.
func (e *Engine) update(ctx context.Context, b *entry, who core.Actor, p Patch) error {
	s := b.record.Load()
	if err := e.patchMounts(ctx, s, &p); err != nil {
		return err
	}
	if p.Network != nil {
		n, err := e.network.Check(p.Network)
		if err == nil {
			n, err = e.network.Resolve(n, imageOf(func() (image.Image, error) { return e.imageKept(s.Image, s.ImageDigest) }))
		}
		if err != nil {
			return err
		}
		p.Network = &n
	}
	names := p.fields(s)
	if len(names) == 0 {
		return nil
	}
	if err := e.refuseValues(ctx, s.Project, s.ID, p.onRecord()); err != nil {
		return err
	}
	if err := e.mayChange(ctx, s, p); err != nil {
		return err
	}
	l, limits := b.standing(), p.limits(s.Limits)
	if l != nil && limits != s.Limits {
		if err := e.resize(ctx, b, l, limits); err != nil {
			return err
		}
		e.checkpoint("update.done")
	}
	// What cannot be kept of it is taken back: the record says what is in force.
	undo := func() {
		actx, cancel := core.Aside(ctx)
		defer cancel()
		if p.Network != nil && l != nil {
			e.reopenNetwork(actx, b, l)
		}
		if l != nil && limits != s.Limits {
			e.fit(actx, b, l)
			l.unfit = true // which of the two the store has is seen later
			e.later(b)
		}
	}
	if p.Network != nil && l != nil {
		if err := e.openNetwork(ctx, b, l, *p.Network); err != nil {
			undo()
			return err
		}
	}
	at := e.now()
	ev := who.Event(sandbox.EventUpdated, s, at)
	ev.Detail = "changed " + strings.Join(names, ", ") // names only: values may be secrets
	if p.Network != nil {
		ev.Detail = sandbox.Clip(ev.Detail+withPresets(*p.Network), sandbox.MaxEventDetail)
	}
	err := e.commitWith(ctx, b, func(s *sandbox.Sandbox) { p.apply(s, at) }, func(tx store.Tx) error {
		if p.mounts != nil {
			if err := volume.Mountable(tx, s.Project, *p.mounts); err != nil {
				return err
			}
		}
		return tx.Events().Append(ev)
	}, ev)
	if err != nil {
		undo()
		return err
	}
	e.checkpoint("update.outcome")
	if l != nil && p.Env != nil {
		l.setEnv(*p.Env, b.record.Load().Mounts)
	}
	e.plan(b)
	return nil
}

// onRecord is what p would keep in plain text.
func (p Patch) onRecord() onRecord {
	o := onRecord{}
	if p.Env != nil {
		o.labels("env", *p.Env)
	}
	if p.Metadata != nil {
		o.labels("metadata", *p.Metadata)
	}
	if p.Network != nil {
		o["network"] = p.Network.AllowDomains
	}
	return o
}

// mayChange refuses what would have no effect, or one that nobody expects.
func (e *Engine) mayChange(ctx context.Context, s *sandbox.Sandbox, p Patch) error {
	if p.AutoDelete != nil && *p.AutoDelete && s.State == sandbox.Stopped {
		return fault.New(fault.State, "auto_delete: the sandbox %s is stopped already, and would be deleted at once", s.Ref()).
			WithRemedy("start it first (start %s), or delete it", s.Ref())
	}
	return e.mayIdle(ctx, s.Runtime, p.OnIdle)
}

// mayIdle refuses to pause idle sandboxes of a runtime that cannot.
func (e *Engine) mayIdle(ctx context.Context, runtimeName string, a *sandbox.IdleAction) error {
	if a == nil || *a != sandbox.IdlePause {
		return nil
	}
	caps, err := e.capabilities(ctx, runtimeName)
	if err != nil {
		return err
	}
	if why, known := caps[runtime.Pause]; why != nil || !known {
		return e.cannot(ctx, runtimeName, runtime.Pause, "pause a sandbox")
	}
	return nil
}

// resize returns an instance that is up other limits than its record has.
func (e *Engine) resize(ctx context.Context, b *entry, l *session, limits sandbox.Limits) error {
	why := "its runtime does not"
	if r, ok := l.inst.(runtime.Resizer); ok {
		err := r.Resize(ctx, limits)
		switch fault.Of(err) {
		case "", fault.Conflict:
			return err
		case fault.Unsupported:
			why = core.Reason(err)
		default: // a part may have been changed
			l.unfit = true
			e.later(b)
			return err
		}
	}
	s := b.record.Load()
	return fault.New(fault.State, "the limits of the sandbox %s, which is %s, can change only while it is stopped (%s)", s.Ref(), s.State, why).
		WithRemedy("stop it (stop %s), change them, and start it again", s.Ref())
}

// apply makes the changes.
func (p Patch) apply(s *sandbox.Sandbox, at time.Time) {
	s.UpdatedAt = at
	s.Limits = p.limits(s.Limits)
	if p.Env != nil {
		s.Env = maps.Clone(*p.Env)
	}
	if p.Metadata != nil {
		s.Metadata = maps.Clone(*p.Metadata)
	}
	set(&s.IdleTimeout, p.IdleTimeout)
	set(&s.OnIdle, p.OnIdle)
	set(&s.Retention, p.Retention)
	set(&s.AutoDelete, p.AutoDelete)
	set(&s.ExpiresAt, p.ExpiresAt)
	set(&s.Clocks.TTL, p.SlidingTTL)
	set(&s.AutoStart, p.AutoStart)
	set(&s.AutoResume, p.AutoResume)
	set(&s.Checkpoints, p.Checkpoints)
	set(&s.Mounts, p.mounts)
	set(&s.Network, p.Network)
	if p.TTL != nil {
		s.ExpiresAt = time.Time{}
		if *p.TTL > 0 {
			s.ExpiresAt = at.Add(*p.TTL)
		}
	}
}
