// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gates

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

	mu        sync.Mutex // of one Bind at a time
	secrets   []egress.Bound
	headers   sandbox.HostHeaders
	keys      *egress.Keys
	authority *egress.Authority
	known     bool // whether the sandbox is known to trust no authority of ours
	complaint string
}

// Variables are those that each command begins with, unless it has them.
func (o *Gate) Variables() map[string]string {
	if env := o.bound.env.Load(); env != nil {
		return *env
	}
	return nil
}

// Bind brings the gate of a running sandbox, and what is trusted inside, in line with the
// bound secrets that hold for it. What cannot be done is on the sandbox's record and keeps
// nothing else from going on: then its programs do without those secrets.
func (o *Gate) Bind(ctx context.Context) {
	o.mu.Lock()
	gate := o.gate
	o.mu.Unlock()
	s := o.Record()
	if gate == nil || s == nil { // nothing leaves; what is trusted inside does not matter
		return
	}
	a := &o.bound
	a.mu.Lock()
	defer a.mu.Unlock()
	set, err := o.g.n.Secrets.Of(ctx, s.Project, s.ID)
	if err == nil {
		err = o.makeKeys(a, s.Project, set.All, gate.Policy().Of().Headers)
	}
	if err != nil {
		o.complain(ctx, a, "secrets: bound secrets cannot be used: "+core.Reason(err))
		return
	}
	gate.SetKeys(a.keys)
	if o.Silent() {
		a.owed.Store(true)
		return
	}
	o.trustLocked(ctx)
}

// TrustOwed changes what is trusted inside, where that could not be done before.
func (o *Gate) TrustOwed(ctx context.Context) {
	a := &o.bound
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owed.Load() {
		o.trustLocked(ctx)
	}
}

// trustLocked makes what is trusted inside that of the keys, with a.mu held.
func (o *Gate) trustLocked(ctx context.Context) {
	a := &o.bound
	a.owed.Store(false)
	switch {
	case a.keys != nil, len(o.g.o.Authorities) > 0:
		var secrets []byte
		about := "programs may not trust the authorities that the operator added: "
		if a.keys != nil {
			secrets, about = a.authority.PEM(), "secrets: programs may not trust the authority that bound secrets need: "
		}
		env, complaint := trust.Add(ctx, o.Client, secrets, o.g.o.Authorities)
		a.env.Store(&env)
		a.known = false
		if complaint != "" {
			complaint = about + complaint
		}
		o.complain(ctx, a, complaint)
	case !a.known:
		a.known = true
		a.env.Store(nil)
		// No program needs it to be gone, so none waits for it.
		o.g.core.Spawn(func(ctx context.Context) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.keys != nil {
				return
			}
			if complaint := trust.Remove(ctx, o.Client); complaint != "" && ctx.Err() == nil {
				o.g.core.Log.Info("a sandbox still trusts the authority of bound secrets that it no longer has", "sandbox", o.ID, "why", complaint)
			}
		})
	}
}

// makeKeys makes the keys of the secrets that are bound, and of the headers that the policy sets.
func (o *Gate) makeKeys(a *boundSecrets, project string, all []secrets.Secret, headers sandbox.HostHeaders) error {
	var bound []egress.Bound
	var hosts []string
	for _, s := range all {
		if s.Bound() {
			bound = append(bound, egress.Bound{Secret: s.Secret, Value: s.Value})
			hosts = append(hosts, s.Hosts...)
		}
	}
	for h := range headers {
		hosts = append(hosts, h)
	}
	same := func(x, y egress.Bound) bool {
		return x.Value == y.Value && x.Name == y.Name && x.Sandbox == y.Sandbox && x.Vault == y.Vault && x.Header == y.Header && x.Format == y.Format && slices.Equal(x.Hosts, y.Hosts) && slices.Equal(x.StandInHeaders, y.StandInHeaders)
	}
	switch {
	case len(hosts) == 0:
		a.secrets, a.headers, a.keys, a.authority = nil, nil, nil, nil
		return nil
	case slices.EqualFunc(a.secrets, bound, same) && a.headers.Equal(headers):
		return nil
	}
	// One for each project: what a program of a sandbox trusts, it trusts in a fork as well.
	key, err := egress.AuthorityKey(o.g.n.Ring.Derive("egress authority "+project, egress.AuthoritySeed))
	if err != nil {
		return err
	}
	authority, err := egress.NewAuthority(key, hosts, o.g.n.Wall)
	if err != nil {
		return err
	}
	a.secrets, a.headers, a.keys, a.authority = bound, headers, egress.NewKeys(authority, bound, headers), authority
	return nil
}

// BindOwed is Bind for a sandbox whose processes go on again.
func (o *Gate) BindOwed(ctx context.Context) {
	if o.bound.owed.Load() {
		o.Bind(ctx)
	}
}

// complain puts on a sandbox's record why its bound secrets, or connections that the operator's
// authorities vouch for, may not work, once.
func (o *Gate) complain(ctx context.Context, a *boundSecrets, complaint string) {
	was := a.complaint
	a.complaint = complaint
	s := o.Record()
	if complaint == "" || complaint == was || s == nil {
		return
	}
	ev := core.System.Event(sandbox.EventNetworkRefused, s, o.g.core.Now())
	ev.OK, ev.Detail = false, sandbox.Clip(complaint, sandbox.MaxEventDetail)
	if err := o.g.core.Store.Update(ctx, func(tx store.Tx) error { return tx.Events().Append(ev) }); err != nil {
		o.g.core.Log.Warn("why a sandbox may not trust what it should cannot be recorded", "sandbox", o.ID, "error", err, "why", complaint)
		return
	}
	o.g.core.Metrics.Happened([]*sandbox.Event{ev})
}
