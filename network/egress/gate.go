// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"sandpit.dev/network/policy"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Options of a Gate. All are required but where it says otherwise.
type Options struct {
	Policy   *policy.Policy
	Journal  *Journal
	Resolver Resolver // nil: the host's
	// Dial connects to an address of the world; nil: from the host.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Gate is the way out of one sandbox.
type Gate struct {
	o         Options
	journal   *Journal
	pins      *pins
	state     atomic.Pointer[state]
	questions chan struct{} // one for each that is being answered

	mu    sync.Mutex
	flows map[*flow]struct{}
	paths map[path]net.Conn // of datagrams, to the outside
}

// state is what changes at once.
type state struct{ policy *policy.Policy }

// Bounds of one sandbox's connections.
const (
	maxFlows     = 1024 // TCP connections and paths of datagrams
	dialBound    = 10 * time.Second
	firstBound   = 10 * time.Second // how long a program may take to say its first bytes, where they are needed
	maxDatagram  = 64 << 10
	quietPath    = 60 * time.Second // a path of datagrams ends after this without any
	keepAliveFor = 30 * time.Second
)

// NewGate makes a gate that is closed until it serves.
func NewGate(o Options) *Gate {
	if o.Resolver == nil {
		o.Resolver = &net.Resolver{PreferGo: true}
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{KeepAlive: keepAliveFor}).DialContext
	}
	g := &Gate{o: o, journal: o.Journal, pins: newPins(), questions: make(chan struct{}, maxQuestions), flows: make(map[*flow]struct{}), paths: make(map[path]net.Conn)}
	g.state.Store(&state{o.Policy})
	return g
}

// Policy is the one in force.
func (g *Gate) Policy() *policy.Policy { return g.state.Load().policy }

// SetPolicy puts another policy in force, and cuts what it does not allow.
func (g *Gate) SetPolicy(p *policy.Policy) {
	g.state.Store(&state{p})
	g.mu.Lock()
	defer g.mu.Unlock()
	for f := range g.flows {
		if !f.allowed(p) {
			f.cut()
		}
	}
}

// Serve lets a sandbox's traffic through until ctx is done or the traffic ends, which
// it closes. It waits for all that it began.
func (g *Gate) Serve(ctx context.Context, t runtime.Traffic) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		<-ctx.Done()
		g.cutAll() // while its programs can still be told
		_ = t.Close()
	})
	work.Go(func() {
		defer cancel()
		for {
			c, err := t.Accept()
			if err != nil {
				if ctx.Err() == nil && pause(ctx, err) {
					continue
				}
				return
			}
			work.Go(func() { g.connection(ctx, c) })
		}
	})
	work.Go(func() {
		defer cancel()
		b := make([]byte, maxDatagram)
		for {
			n, from, to, err := t.Read(b)
			if err != nil {
				if ctx.Err() == nil && pause(ctx, err) {
					continue
				}
				return
			}
			if to.Port() == dnsPort {
				g.question(ctx, &work, t, append([]byte(nil), b[:n]...), from, to)
				continue
			}
			g.datagram(ctx, &work, t, b[:n], from, to)
		}
	})
	work.Wait()
}

func (g *Gate) cutAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for f := range g.flows {
		f.cut()
	}
}

const dnsPort = 53

// pause waits a moment after an error that may pass, such as a lack of descriptors;
// false: it will not.
func pause(ctx context.Context, err error) bool {
	if !temporary(err) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(50 * time.Millisecond):
		return true
	}
}

// question answers a datagram to port 53, unless too many are being answered.
func (g *Gate) question(ctx context.Context, work *sync.WaitGroup, t runtime.Traffic, b []byte, from, to netip.AddrPort) {
	select {
	case g.questions <- struct{}{}:
	default:
		return
	}
	work.Go(func() {
		defer func() { <-g.questions }()
		if a := g.answer(ctx, b, maxUDPAnswer); a != nil {
			_ = t.Answer(a, to.Addr(), from)
		}
	})
}

// flow is a connection, or a path of datagrams, that was let through.
type flow struct {
	to    netip.AddrPort
	name  atomic.Pointer[string] // that it was let through for; nil: for its address
	close func()
	once  sync.Once
}

func (f *flow) cut() { f.once.Do(f.close) }

// allowed tells whether p lets the flow through.
func (f *flow) allowed(p *policy.Policy) bool {
	name := f.name.Load()
	named := name != nil && p.Name(*name) == policy.Allowed
	reason := p.Connection(f.to, named)
	return reason == policy.Allowed || p.Learning() && reason.Learnable()
}

// enter notes a flow; false: there are too many, or it is no longer allowed.
func (g *Gate) enter(f *flow) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.flows) >= maxFlows || !f.allowed(g.state.Load().policy) {
		return false
	}
	g.flows[f] = struct{}{}
	return true
}

func (g *Gate) leave(f *flow) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.flows, f)
}

// refuse notes that something was not let through.
func (g *Gate) refuse(e Entry, why policy.Reason) {
	e.Reason = why
	g.journal.note(e)
}

// Proposal is a policy under which all that was noted would have been allowed, as far
// as a sandbox's own policy can allow it.
func Proposal(entries []Entry, was sandbox.NetworkPolicy) sandbox.NetworkPolicy {
	p := sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowDomains: append([]string(nil), was.AllowDomains...), AllowCIDRs: append([]netip.Prefix(nil), was.AllowCIDRs...)}
	names, addrs := make(map[string]bool), make(map[netip.Prefix]bool)
	for _, n := range p.AllowDomains {
		names[n] = true
	}
	for _, a := range p.AllowCIDRs {
		addrs[a] = true
	}
	for _, e := range entries {
		switch {
		case !e.Learned && e.Reason != policy.Allowed && !e.Reason.Learnable():
		case e.Name != "" && !names[e.Name] && len(p.AllowDomains) < sandbox.MaxAllowDomains:
			names[e.Name] = true
			p.AllowDomains = append(p.AllowDomains, e.Name)
		case e.Name == "" && e.Address.IsValid() && len(p.AllowCIDRs) < sandbox.MaxAllowCIDRs:
			if a := netip.PrefixFrom(e.Address, e.Address.BitLen()); !addrs[a] {
				addrs[a] = true
				p.AllowCIDRs = append(p.AllowCIDRs, a)
			}
		}
	}
	return p
}
