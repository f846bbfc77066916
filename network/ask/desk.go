// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/network/permit"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Engine is what requests are made of; *engine.Engine is one.
type Engine interface {
	Get(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Update(ctx context.Context, c access.Caller, ref string, p update.Patch) (*sandbox.Sandbox, error)
	Presets(ctx context.Context, c access.Caller, image string) (all []permit.Preset, built bool, err error)
	InForce(sandbox.NetworkPolicy) sandbox.NetworkPolicy
	Store() store.Store
}

// Desk takes requests, and has them answered. It is safe for concurrent use.
type Desk struct {
	engine Engine
	rules  func() permit.Rules
	now    func() time.Time
	book   Book
	forms  forms

	loading sync.Mutex
	loaded  bool       // book has what the store has
	grants  sync.Mutex // one at a time, since each adds to the policy that it finds
}

// NewDesk returns a desk of a server whose operator has these rules, which may change; now is the clock, nil: time.Now.
func NewDesk(e Engine, r func() permit.Rules, now func() time.Time) *Desk {
	if now == nil {
		now = time.Now
	}
	return &Desk{engine: e, rules: r, now: now}
}

// load enters in the book, once, what waited when the server began.
func (d *Desk) load(ctx context.Context) error {
	d.loading.Lock()
	defer d.loading.Unlock()
	if d.loaded {
		return nil
	}
	var all []*store.NetworkRequest
	if err := d.engine.Store().View(ctx, func(tx store.Tx) (err error) { all, err = tx.NetworkRequests().All(); return err }); err != nil {
		return err
	}
	d.loaded = true
	for _, r := range all {
		d.book.Put(Request(*r))
	}
	return nil
}

// Asks reports whether anything may be asked for on this server.
func (d *Desk) Asks() bool {
	r := d.rules()
	return r.Ask != permit.AskNothing && r.Most != sandbox.NetworkOff
}

// State is what became of a request.
type State string

// States of requests.
const (
	Pending State = "pending" // a person has to grant it
	Granted State = "granted" // an operator's rule, or a person, granted it
	Allowed State = "allowed" // the sandbox may reach all of it already
	Denied  State = "denied"  // a person does not want it
)

// RequestNetwork asks that a sandbox may reach presets and exact names besides what it may reach, with
// words why. What an operator's rule allows is granted at once; else it waits for a person.
func (d *Desk) RequestNetwork(ctx context.Context, c access.Caller, ref string, presets, domains []string, why string) (Request, State, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return Request{}, "", err
	}
	asked, err := d.rules().Asked(presets, domains)
	if err != nil {
		return Request{}, "", err
	}
	s, err := d.engine.Get(ctx, c, ref)
	if err != nil {
		return Request{}, "", err
	}
	all, _, err := d.engine.Presets(ctx, c, s.Image)
	if err != nil {
		return Request{}, "", err
	}
	r := Request{Sandbox: s.ID, Ref: s.Ref(), Project: s.Project, Presets: asked.AllowPresets, Domains: asked.AllowDomains, Why: why, Actor: c.Actor}
	if asked, err = d.rules().Join(asked, all); err != nil {
		return Request{}, "", err
	}
	r.Names = asked.PresetDomains
	if permit.Covers(d.engine.InForce(s.Network), asked) {
		return r, Allowed, nil
	}
	byRule, err := d.rules().ByRule(asked, all)
	if err != nil {
		return Request{}, "", err
	}
	if byRule {
		return r, Granted, d.widen(ctx, c, r, nil)
	}
	if err := d.load(ctx); err != nil {
		return Request{}, "", err
	}
	if d.book.Full(r.Project) { // perhaps of sandboxes that are gone
		d.waiting(ctx, c, "")
	}
	names := r.Names // one that waits may be of a time when its presets stood for others
	r, added, err := d.book.Add(r, d.now())
	r.Names = names
	if err != nil || !added {
		return r, Pending, err
	}
	if err := d.record(ctx, c, sandbox.EventNetworkRequested, r, ""); err != nil {
		d.book.Remove(r)
		return Request{}, "", err
	}
	return r, Pending, nil
}

// NetworkRequests lists the requests that wait for an answer, the oldest first: of one sandbox, or where
// ref is "" of the caller's project.
func (d *Desk) NetworkRequests(ctx context.Context, c access.Caller, ref string) ([]Request, error) {
	if err := c.Require(access.SandboxesRead); err != nil {
		return nil, err
	}
	var of sandbox.ID
	if ref != "" {
		s, err := d.engine.Get(ctx, c, ref)
		if err != nil {
			return nil, err
		}
		of = s.ID
	}
	if err := d.load(ctx); err != nil {
		return nil, err
	}
	return d.waiting(ctx, c, of), nil
}

// waiting returns the requests of sandboxes that are there, and forgets those of others.
func (d *Desk) waiting(ctx context.Context, c access.Caller, of sandbox.ID) (out []Request) {
	for _, r := range d.book.List(c.Project, of, d.now()) {
		if _, err := d.engine.Get(ctx, c, string(r.Sandbox)); fault.Is(err, fault.NotFound) {
			d.book.Forget(r.Sandbox)
			continue
		}
		out = append(out, r)
	}
	return out
}

// GrantNetwork lets a sandbox reach what was asked for. No tool calls it: a person does. See also AnswerNetwork.
func (d *Desk) GrantNetwork(ctx context.Context, c access.Caller, id string) (Request, error) {
	return d.answer(ctx, c, id, sandbox.EventNetworkGranted, "", func(r Request) error { return d.widen(ctx, c, r, nil) })
}

// DenyNetwork forgets a request.
func (d *Desk) DenyNetwork(ctx context.Context, c access.Caller, id string) (Request, error) {
	return d.answer(ctx, c, id, sandbox.EventNetworkDenied, "", func(Request) error { return nil })
}

// answer answers a request that waits; how is what the event says of the way that the answer came.
func (d *Desk) answer(ctx context.Context, c access.Caller, id string, t sandbox.EventType, how string, do func(Request) error) (Request, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return Request{}, err
	}
	if err := d.load(ctx); err != nil {
		return Request{}, err
	}
	r, err := d.book.Get(c.Project, id, d.now())
	if err != nil {
		return Request{}, err
	}
	if err := do(r); err != nil {
		return Request{}, err
	}
	if !d.book.Remove(r) { // somebody else answered it meanwhile
		return r, nil
	}
	if err := d.record(ctx, c, t, r, how); err != nil {
		d.book.Put(r) // as the store has it
		return Request{}, err
	}
	return r, nil
}

// widen adds to a sandbox's policy what a request names. The engine holds it to the operator's bounds, and
// to another, if that is not nil.
func (d *Desk) widen(ctx context.Context, c access.Caller, r Request, b update.Bound) error {
	d.grants.Lock()
	defer d.grants.Unlock()
	s, err := d.engine.Get(ctx, c, string(r.Sandbox))
	if err != nil {
		return err
	}
	p := permit.Widen(d.engine.InForce(s.Network), r.Presets, r.Domains)
	_, err = d.engine.Update(ctx, c, string(r.Sandbox), update.Patch{Network: &p, Bound: b})
	return err
}

// record commits what became of a request: that it waits, or that it was answered and waits no more.
// how is added to the event.
func (d *Desk) record(ctx context.Context, c access.Caller, t sandbox.EventType, r Request, how string) error {
	detail := r.ID + ": " + strings.Join(r.Allow(), ", ")
	if how != "" {
		detail = sandbox.Clip(detail, sandbox.MaxEventDetail-len(how)-len("…")) + how
	}
	if r.Why != "" && t == sandbox.EventNetworkRequested {
		detail += "; it says: " + strconv.Quote(r.Why)
	}
	return d.engine.Store().Update(ctx, func(tx store.Tx) error {
		switch t {
		case sandbox.EventNetworkRequested:
			kept := store.NetworkRequest(r)
			if err := cmp.Or(tx.NetworkRequests().Expire(d.now()), tx.NetworkRequests().Insert(&kept)); err != nil {
				return err
			}
		default:
			// It may have been of a sandbox that was deleted meanwhile.
			if err := tx.NetworkRequests().Delete(r.ID); err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
		}
		return tx.Events().Append(&sandbox.Event{
			Sandbox: r.Sandbox, Project: r.Project, Type: t, At: d.now(), Actor: c.Actor, Via: c.Via, ProcessID: r.ID,
			Detail: sandbox.Clip(detail, sandbox.MaxEventDetail), Done: true, OK: true,
		})
	})
}

// Allow returns what a request names, presets first.
func (r Request) Allow() []string {
	return append(append([]string(nil), r.Presets...), r.Domains...)
}
