// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"sandpit.dev/engine/core"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/trust"
	"sandpit.dev/network/egress"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// boundSecrets are those of one time of being up. Its zero value has none.
type boundSecrets struct {
	env atomic.Pointer[map[string]string] // by which programs find what to trust; nil: none
	// owed is that what is inside could not be changed, since it was frozen or its agent said
	// nothing.
	owed atomic.Bool

	mu        sync.Mutex // of one bindSecrets at a time
	secrets   []egress.Bound
	keys      *egress.Keys
	authority *egress.Authority
	known     bool // whether the sandbox is known to trust no authority of ours
	complaint string
}

// variables are those that each command begins with, unless it has them.
func (a *boundSecrets) variables() map[string]string {
	if env := a.env.Load(); env != nil {
		return *env
	}
	return nil
}

// bindSecrets brings the gate of a running sandbox, and what is trusted inside, in line with the
// bound secrets that hold for it. What cannot be done is on the sandbox's record and keeps
// nothing else from going on: then its programs do without those secrets.
func (e *Engine) bindSecrets(ctx context.Context, b *entry, l *session) {
	l.network.mu.Lock()
	gate := l.network.gate
	l.network.mu.Unlock()
	s := b.record.Load()
	if gate == nil || s == nil { // nothing leaves; what is trusted inside does not matter
		return
	}
	a := &l.bound
	a.mu.Lock()
	defer a.mu.Unlock()
	set, err := e.secrets.Of(ctx, s.Project, s.ID)
	if err == nil {
		err = e.makeKeys(a, s.Project, set.All)
	}
	if err != nil {
		e.complain(ctx, b, a, "secrets: bound secrets cannot be used: "+core.Reason(err))
		return
	}
	gate.SetKeys(a.keys)
	if l.pauses.Paused() || l.unheard.Load() || !l.client.SilentSince().IsZero() {
		a.owed.Store(true)
		return
	}
	e.trustLocked(ctx, b, l)
}

// trustOwed changes what is trusted inside, where that could not be done before.
func (e *Engine) trustOwed(ctx context.Context, b *entry, l *session) {
	a := &l.bound
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owed.Load() {
		e.trustLocked(ctx, b, l)
	}
}

// trustLocked makes what is trusted inside that of the keys, with a.mu held.
func (e *Engine) trustLocked(ctx context.Context, b *entry, l *session) {
	a := &l.bound
	a.owed.Store(false)
	switch {
	case a.keys != nil, len(e.network.Authorities) > 0:
		var secrets []byte
		about := "programs may not trust the authorities that the operator added: "
		if a.keys != nil {
			secrets, about = a.authority.PEM(), "secrets: programs may not trust the authority that bound secrets need: "
		}
		env, complaint := trust.Add(ctx, l.client, secrets, e.network.Authorities)
		a.env.Store(&env)
		a.known = false
		if complaint != "" {
			complaint = about + complaint
		}
		e.complain(ctx, b, a, complaint)
	case !a.known:
		a.known = true
		a.env.Store(nil)
		// No program needs it to be gone, so none waits for it.
		e.group.Spawn(func(ctx context.Context) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.keys != nil {
				return
			}
			if complaint := trust.Remove(ctx, l.client); complaint != "" && ctx.Err() == nil {
				e.core.Log.Info("a sandbox still trusts the authority of bound secrets that it no longer has", "sandbox", b.id, "why", complaint)
			}
		})
	}
}

// makeKeys makes the keys of the secrets that are bound.
func (e *Engine) makeKeys(a *boundSecrets, project string, all []secrets.Secret) error {
	var bound []egress.Bound
	var hosts []string
	for _, s := range all {
		if s.Bound() {
			bound = append(bound, egress.Bound{Secret: s.Secret, Value: s.Value})
			hosts = append(hosts, s.Hosts...)
		}
	}
	same := func(x, y egress.Bound) bool {
		return x.Value == y.Value && x.Name == y.Name && x.Sandbox == y.Sandbox && x.Header == y.Header && x.Format == y.Format && slices.Equal(x.Hosts, y.Hosts)
	}
	switch {
	case len(bound) == 0:
		a.secrets, a.keys, a.authority = nil, nil, nil
		return nil
	case slices.EqualFunc(a.secrets, bound, same):
		return nil
	}
	// One for each project: what a program of a sandbox trusts, it trusts in a fork as well.
	key, err := egress.AuthorityKey(e.ring.Derive("egress authority "+project, egress.AuthoritySeed))
	if err != nil {
		return err
	}
	authority, err := egress.NewAuthority(key, hosts, e.wall)
	if err != nil {
		return err
	}
	a.secrets, a.keys, a.authority = bound, egress.NewKeys(authority, bound), authority
	return nil
}

// bindOwed is bindSecrets for a sandbox whose processes go on again.
func (e *Engine) bindOwed(ctx context.Context, b *entry, l *session) {
	if l.bound.owed.Load() {
		e.bindSecrets(ctx, b, l)
	}
}

// bindAll is bindSecrets for each running sandbox that a change of secrets concerns: one, or "" for
// all of the project.
func (e *Engine) bindAll(ctx context.Context, project string, of sandbox.ID) {
	var all []*entry
	e.mu.Lock()
	for id, b := range e.entries {
		if s := b.record.Load(); s != nil && s.Project == project && (of == "" || id == of) {
			b.refs++
			all = append(all, b)
		}
	}
	e.mu.Unlock()
	var work sync.WaitGroup
	slots := make(chan struct{}, bindAtOnce)
	for _, b := range all {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			defer e.release(b)
			if l := b.standing(); l != nil {
				e.bindSecrets(ctx, b, l)
			}
		})
	}
	work.Wait()
}

// bindAtOnce is how many sandboxes bindAll works on at a time.
const bindAtOnce = 16

// complain puts on a sandbox's record why its bound secrets, or connections that the operator's
// authorities vouch for, may not work, once.
func (e *Engine) complain(ctx context.Context, b *entry, a *boundSecrets, complaint string) {
	was := a.complaint
	a.complaint = complaint
	s := b.record.Load()
	if complaint == "" || complaint == was || s == nil {
		return
	}
	ev := core.System.Event(sandbox.EventNetworkRefused, s, e.now())
	ev.OK, ev.Detail = false, sandbox.Clip(complaint, sandbox.MaxEventDetail)
	if err := e.core.Store.Update(ctx, func(tx store.Tx) error { return tx.Events().Append(ev) }); err != nil {
		e.core.Log.Warn("why a sandbox may not trust what it should cannot be recorded", "sandbox", b.id, "error", err, "why", complaint)
		return
	}
	e.core.Metrics.Happened([]*sandbox.Event{ev})
}
