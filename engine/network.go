// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/defaults"
	"sandpit.dev/engine/gates"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/network/egress"
	"sandpit.dev/network/permit"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// NetworkOptions is what the operator says of all sandboxes' networks.
type NetworkOptions struct {
	permit.Rules // without presets: those that need no settings of a host
	gates.Options
}

// hasty are variables that have package tools give up on a name that is refused: once more is at once. By
// themselves pip asks six times, over eight seconds, and npm three times, over a minute or more.
func hasty(p sandbox.NetworkPolicy) map[string]string {
	if p.Mode == sandbox.NetworkOpen {
		return nil
	}
	return map[string]string{"PIP_RETRIES": "1", "npm_config_fetch_retries": "1", "npm_config_fetch_retry_mintimeout": "100"}
}

// Carried returns how many bytes a sandbox that is up got from other hosts, and sent to them, since it came up or this
// server found it. It reports false for one that is not up, or whose runtime gives it no network.
func (e *Engine) Carried(id sandbox.ID) (in, out int64, ok bool) {
	e.mu.Lock()
	b := e.entries[id]
	e.mu.Unlock()
	if b == nil {
		return 0, 0, false
	}
	l := b.standing()
	if l == nil {
		return 0, 0, false
	}
	c, ok := l.gate.Carried()
	return c.In, c.Out, ok
}

// Most is the most that a sandbox of this server may ask for.
func (e *Engine) Most() sandbox.Limits { return e.settings.Load().Most }

// Settings returns what is in force, which is not to be changed. Clocks that are never are zero in it.
func (e *Engine) Settings() *defaults.Settings { return e.settings.Load() }

// Set puts other settings in force, of which zero fields are as in [Options]: for requests from now on, and of networks for all sandboxes,
// whose traffic follows within seconds. So is the retention of all who did not ask for one. The presets stay those that there are.
func (e *Engine) Set(s defaults.Settings) (err error) {
	if s.Defaults, err = s.Filled(); err != nil {
		return err
	}
	s.Network.Presets = e.settings.Load().Network.Presets
	e.settings.Store(&s)
	if set := e.set.Load(); set != nil {
		(*set)()
	}
	e.mu.Lock()
	all := slices.Collect(maps.Values(e.entries))
	e.mu.Unlock()
	for _, b := range all {
		b.commitMu.Lock()
		was := b.record.Load()
		b.record.CompareAndSwap(was, s.Kept(was)) // it may be deleted meanwhile
		b.commitMu.Unlock()
		e.plan(b)
	}
	return e.core.Store.Update(context.Background(), func(tx store.Tx) error { return tx.Sandboxes().Retain(s.Retention) })
}

// builds reports whether a caller is what builds images.
func (e *Engine) builds(c access.Caller) bool {
	return e.builder != "" && c.Project == e.builder
}

// Networks lists the modes that sandboxes of this server may have, the narrowest first.
func (e *Engine) Networks() []sandbox.NetworkMode { return e.settings.Load().Network.Modes() }

// DefaultNetwork is the policy of a sandbox for which a caller asks for none.
func (e *Engine) DefaultNetwork() sandbox.NetworkPolicy {
	p, _ := e.settings.Load().Network.Check(nil) // there is nothing to refuse
	return p
}

// InForce is what holds of a sandbox's policy: the server may allow less by now than
// when the sandbox was made.
func (e *Engine) InForce(p sandbox.NetworkPolicy) sandbox.NetworkPolicy {
	return e.settings.Load().Network.Bounded(p)
}

// PresetNames returns the names of the server's presets, sorted.
func (e *Engine) PresetNames() []string { return e.settings.Load().Network.Presets.Names() }

// Presets tells what the server's presets stand for in a sandbox of an image; "" is the default one.
// Where that is not built, no settings of the image are among it, and built is false.
func (e *Engine) Presets(ctx context.Context, c access.Caller, imageName string) (all []permit.Preset, built bool, err error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return nil, false, err
	}
	defer e.group.Leave()
	if _, err := e.images.Resolve(imageName); err != nil {
		return nil, false, err
	}
	img, err := e.images.Find(ctx, imageName)
	if fault.Is(err, fault.NotFound) {
		all, err = e.settings.Load().Network.List(nil)
		return all, false, err
	}
	if err == nil {
		all, err = e.settings.Load().Network.List(&permit.Image{Root: img.Root, Env: img.Env})
	}
	return all, err == nil, err
}

// imageOf is find for what a policy's presets are read from.
func imageOf(find func() (image.Image, error)) func() (permit.Image, error) {
	return func() (permit.Image, error) {
		img, err := find()
		return permit.Image{Root: img.Root, Env: img.Env}, err
	}
}

// withPresets is what an event says of a policy's presets.
func withPresets(p sandbox.NetworkPolicy) string {
	if words := permit.Words(p); words != "" {
		return "; " + words
	}
	return ""
}

// openNetwork makes the instance's network what p says, at once. After an error it has none.
func (e *Engine) openNetwork(ctx context.Context, b held, l *session, p sandbox.NetworkPolicy) error {
	err := l.gate.Open(ctx, e.settings.Load().Network.Bounded(p))
	if errors.Is(err, gates.ErrNone) {
		return e.cannot(ctx, b.record.Load().Runtime, runtime.Network, "give a sandbox a network")
	}
	return err
}

// gateOf returns the gate of a life that begins.
func (e *Engine) gateOf(b *entry, l *session) *gates.Gate {
	return e.gates.Of(gates.Life{
		ID: b.id, Record: b.record.Load, Instance: l.inst, Client: l.client,
		Silent: func() bool { return l.pauses.Paused() || l.unheard.Load() || !l.client.SilentSince().IsZero() },
		Again:  func() { e.later(b) },
	})
}

// reopenNetwork is openNetwork for a sandbox that runs already: what fails leaves it without a
// network, says so, and is tried again.
func (e *Engine) reopenNetwork(ctx context.Context, b held, l *session) {
	if err := e.openNetwork(ctx, b, l, b.record.Load().Network); err != nil {
		e.core.Log.Error("a running sandbox has no network now; it is tried again", "sandbox", b.id, "error", err)
		e.later(b.entry)
	}
}

// NetworkLog is what a sandbox tried to reach since it was started, or since the
// server was.
type NetworkLog struct {
	Policy   sandbox.NetworkPolicy
	Since    time.Time      // zero: it has had no network since
	Entries  []egress.Entry // the latest first
	Dropped  int64          // how many more there were
	Proposal sandbox.NetworkPolicy
}

// NetworkLog tells what a sandbox tried to reach, what was refused, and which policy
// would allow all of it that one can. Looking is no use of the sandbox.
func (e *Engine) NetworkLog(ctx context.Context, c access.Caller, ref string) (NetworkLog, error) {
	c = c.Inside()
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return NetworkLog{}, err
	}
	defer e.group.Leave()
	b, err := e.find(ctx, c, ref)
	if err != nil {
		return NetworkLog{}, err
	}
	defer e.release(b)
	s := b.record.Load()
	if s == nil {
		return NetworkLog{}, core.NoSandbox(ref)
	}
	out := NetworkLog{Policy: s.Network, Proposal: s.Network}
	l := b.standing()
	if l == nil {
		return out, nil
	}
	if out.Since, out.Entries, out.Dropped = l.gate.Log(); out.Since.IsZero() {
		return out, nil
	}
	out.Proposal = egress.Proposal(out.Entries, s.Network)
	labels := e.labels(ctx, s.Project, s.ID)
	for i := range out.Entries {
		out.Entries[i].Name = labels.String(out.Entries[i].Name)
	}
	out.Proposal.AllowDomains = slices.DeleteFunc(out.Proposal.AllowDomains, func(d string) bool { return labels.In(secrets.MinRefused, d) != "" })
	return out, nil
}
