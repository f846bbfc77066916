// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"slices"
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
	// An error with the code Denied says that the address is the host's own.
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Quota Quota
	Keys  *Keys          // the sandbox's bound secrets; nil: none
	Share *Share         // the project's; nil: there is no bound
	Roots *x509.CertPool // that the hosts of bound secrets are verified by; nil: the host's
	// Refused is called for each connection, and each question for a name, that is not let through; nil: nobody counts
	// them. It must not wait.
	Refused func()
	Counter *Counter // of what is carried; nil: one of its own
	// Hold is how long what may be the beginning of a secret's value is kept back from the
	// sandbox while its host says nothing more; zero: 50 ms.
	Hold time.Duration
}

// Gate is the way out of one sandbox.
type Gate struct {
	o         Options
	journal   *Journal
	pins      *pins
	quotas    *quotas
	state     atomic.Pointer[state]
	questions chan struct{}          // one for each that is being answered
	streams   chan struct{}          // one for each connection with questions
	pending   chan struct{}          // one for each connection that is not let through yet
	requests  chan struct{}          // one for each that takes secrets
	sessions  tls.ClientSessionCache // with hosts of bound secrets
	refused   [2]*refusals           // by the kind of what was refused; questions for names are datagrams

	mu    sync.Mutex
	flows map[*flow]struct{}
	open  [2]int            // flows, by their kind
	paths map[path]net.Conn // of datagrams, to the outside
}

// state is what changes at once.
type state struct {
	policy *policy.Policy
	keys   *Keys
}

// Bounds of one sandbox's connections.
const (
	maxPending   = 256 // connections that are not let through yet; more wait in the kernel
	maxFlows     = 512 // TCP connections
	maxPaths     = 128 // of datagrams
	dialBound    = 10 * time.Second
	firstBound   = 10 * time.Second // how long a program may take to say its first bytes, where they are needed
	maxDatagram  = 16 << 10         // bytes; longer ones are cut
	quietPath    = 60 * time.Second // a path of datagrams ends after this without any
	keepAliveFor = 30 * time.Second
	maxSessions  = 64 // of TLS that are kept to be resumed
)

// NewGate makes a gate that is closed until it serves.
func NewGate(o Options) *Gate {
	if o.Resolver == nil {
		o.Resolver = &net.Resolver{PreferGo: true}
	}
	if o.Counter == nil {
		o.Counter = new(Counter)
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{KeepAlive: keepAliveFor}).DialContext
	}
	g := &Gate{
		o: o, journal: o.Journal, pins: newPins(), quotas: newQuotas(o.Quota), flows: make(map[*flow]struct{}), paths: make(map[path]net.Conn),
		questions: make(chan struct{}, maxQuestions), streams: make(chan struct{}, maxStreams), pending: make(chan struct{}, maxPending),
		requests: make(chan struct{}, maxRequests), sessions: tls.NewLRUClientSessionCache(maxSessions),
		refused: [...]*refusals{connections: newRefusals(), datagrams: newRefusals()},
	}
	g.state.Store(&state{o.Policy, o.Keys})
	return g
}

// Policy is the one in force.
func (g *Gate) Policy() *policy.Policy { return g.state.Load().policy }

// SetPolicy puts another policy in force, and cuts what it does not allow.
func (g *Gate) SetPolicy(p *policy.Policy) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state.Store(&state{p, g.state.Load().keys})
	for f := range g.flows {
		if !f.allowed(p) {
			f.cut()
		}
	}
}

// SetKeys puts other bound secrets in force, and cuts connections whose requests would carry
// something else now.
func (g *Gate) SetKeys(k *Keys) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.state.Load()
	g.state.Store(&state{was.policy, k})
	for f := range g.flows {
		if f.kind == connections && g.rebound(f, was.keys, k) {
			f.cut()
		}
	}
}

// rebound reports whether what a connection carries is other by new keys than by the old.
func (g *Gate) rebound(f *flow, was, now *Keys) bool {
	switch said := f.said.Load(); said {
	case nil: // it is looked at when it says something
		return false
	case unheard:
		// It may be TLS with any name of its address.
		return slices.ContainsFunc(g.pins.names(f.to.Addr()), func(name string) bool {
			return !was.binding(name).same(now.binding(name))
		})
	default:
		what := speaksHTTP
		if f.secure.Load() {
			what = speaksTLS
		}
		carried := now.carried(what, *said)
		if what == speaksHTTP && !g.answered(f, *said) {
			carried = nil
		}
		return !f.carries.Load().same(carried)
	}
}

// Serve lets a sandbox's traffic through until ctx is done or the traffic ends, which
// it closes. It waits for all that it began.
func (g *Gate) Serve(ctx context.Context, t runtime.Traffic) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		g.cutAll() // while its programs can still be told
		_ = t.Close()
	})
	var work sync.WaitGroup
	work.Go(func() {
		defer cancel()
		g.readAll(ctx, &work, t)
	})
	g.acceptAll(ctx, &work, t)
	cancel()
	work.Wait()
	<-ended
}

// acceptAll takes connections until the traffic ends.
func (g *Gate) acceptAll(ctx context.Context, work *sync.WaitGroup, t runtime.Traffic) {
	for {
		// Before Accept, so that what is too much waits in the kernel.
		if !g.refused[connections].wait(ctx) || !take(ctx, g.pending) {
			return
		}
		c, err := t.Accept()
		if err != nil {
			<-g.pending
			if pause(ctx, err) {
				continue
			}
			return
		}
		work.Go(func() {
			decided := sync.OnceFunc(func() { <-g.pending })
			defer decided()
			g.connection(ctx, c, decided)
		})
	}
}

// readAll takes datagrams until the traffic ends. While there is none, it holds no room for
// one: most sandboxes send few.
func (g *Gate) readAll(ctx context.Context, work *sync.WaitGroup, t runtime.Traffic) {
	room := sync.Pool{New: func() any { return new([maxDatagram]byte) }}
	for {
		err := t.Wait()
		if err == nil && !g.refused[datagrams].wait(ctx) {
			return
		}
		if err == nil {
			b := room.Get().(*[maxDatagram]byte)
			err = g.read(ctx, work, t, b[:])
			room.Put(b)
		}
		if err != nil && !pause(ctx, err) {
			return
		}
	}
}

// read takes one datagram.
func (g *Gate) read(ctx context.Context, work *sync.WaitGroup, t runtime.Traffic, b []byte) error {
	n, from, to, err := t.Read(b)
	g.journal.miss(t.Lost())
	switch {
	case err != nil:
		return err
	case to.Port() == dnsPort:
		g.question(ctx, work, t, bytes.Clone(b[:min(n, maxQuestion+1)]), from, to)
	default:
		g.datagram(ctx, work, t, b[:n], from, to)
	}
	return nil
}

func (g *Gate) cutAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for f := range g.flows {
		f.cut()
	}
}

const dnsPort = 53

// take takes a slot; false: ctx ended first.
func take(ctx context.Context, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// pause waits a moment after an error of the traffic, such as a lack of descriptors.
// All may pass but that it is closed, and then it is false.
func pause(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(50 * time.Millisecond):
		return true
	}
}

// question answers a datagram to port 53, unless too many are being answered. Whichever
// server it is meant for, it goes no further.
func (g *Gate) question(ctx context.Context, work *sync.WaitGroup, t runtime.Traffic, b []byte, from, to netip.AddrPort) {
	e := Entry{Protocol: "udp", Address: to.Addr(), Port: to.Port()}
	if len(b) > maxQuestion {
		g.refuse(e, policy.Protocol)
		return
	}
	select {
	case g.questions <- struct{}{}:
	default:
		g.refuse(e, policy.Limit)
		return
	}
	work.Go(func() {
		defer func() { <-g.questions }()
		if a := g.answer(ctx, b, true); a != nil {
			_ = t.Answer(a, to.Addr(), from)
		} else {
			g.refuse(e, policy.Protocol)
		}
	})
}

// flow is a connection, or a path of datagrams, that was let through.
type flow struct {
	to    netip.AddrPort
	kind  kind
	name  atomic.Pointer[string] // that it was let through for; nil: for its address
	said  atomic.Pointer[string] // the host that the program named, "" for none, or unheard; nil: it said nothing yet
	told  atomic.Bool            // the program is being told why it is refused
	noted atomic.Bool            // it is in the journal
	taken atomic.Bool            // its bytes are not passed on any more as they are

	secure  atomic.Bool             // it is TLS, for the host that was said
	carries atomic.Pointer[binding] // what its requests carry; nil: nothing
	in, out atomic.Int64            // bytes that were passed on as they are, of TCP
	ended   atomic.Bool             // it was cut; close may have known only one side then
	close   func()
	once    sync.Once
}

type kind int

const (
	connections kind = iota
	datagrams
)

// most is how many there may be of a kind.
var most = [...]int{connections: maxFlows, datagrams: maxPaths}

// unheard is what was said on a flow whose bytes were passed on without a look.
var unheard = new(string)

func (f *flow) cut() {
	f.ended.Store(true)
	f.once.Do(f.close)
}

// allowed reports whether p lets the flow through.
func (f *flow) allowed(p *policy.Policy) bool {
	name := f.name.Load()
	named := name != nil && p.Name(*name) == policy.Allowed && p.AddressOf(*name, f.to.Addr()) == policy.Allowed
	if reason := p.Connection(f.to, named); reason != policy.Allowed {
		return p.Learning() && reason.Learnable()
	}
	if p.Learning() || p.Listed(f.to.Addr()) {
		return true
	}
	switch said := f.said.Load(); said {
	case nil:
		return true
	case unheard:
		return false
	default:
		return *said == "" || p.Name(*said) == policy.Allowed
	}
}

// enter notes a flow; false: there are too many, or it is no longer allowed.
func (g *Gate) enter(f *flow) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[f.kind] >= most[f.kind] || !f.allowed(g.state.Load().policy) {
		return false
	}
	g.flows[f] = struct{}{}
	g.open[f.kind]++
	return true
}

func (g *Gate) leave(f *flow) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.flows, f)
	g.open[f.kind]--
}

// refuse notes that something was not let through, and reports whether there is time to
// say why.
func (g *Gate) refuse(e Entry, why policy.Reason) bool {
	e.Reason = why
	if g.o.Refused != nil {
		g.o.Refused()
	}
	g.journal.note(e)
	kind := datagrams
	if e.Protocol == "tcp" {
		kind = connections
	}
	return g.refused[kind].spend()
}

// Proposal is a policy under which all that was noted would have been allowed, as far
// as a sandbox's own policy can allow it.
func Proposal(entries []Entry, was sandbox.NetworkPolicy) sandbox.NetworkPolicy {
	p := sandbox.NetworkPolicy{
		Mode: sandbox.NetworkRestricted, AllowDomains: slices.Clone(was.AllowDomains),
		AllowCIDRs: slices.Clone(was.AllowCIDRs), AllowPorts: slices.Clone(was.AllowPorts),
		AllowPresets: slices.Clone(was.AllowPresets), PresetDomains: slices.Clone(was.PresetDomains), Headers: was.Headers,
	}
	for _, e := range entries {
		if !e.Learned && e.Reason != policy.Allowed && !e.Reason.Learnable() {
			continue
		}
		port := sandbox.PortRange{First: e.Port, Last: e.Port}
		if e.Reason == policy.Port && len(p.AllowPorts) > 0 && len(p.AllowPorts) < sandbox.MaxAllowPorts && !slices.Contains(p.AllowPorts, port) {
			p.AllowPorts = append(p.AllowPorts, port)
		}
		rules := policy.New(p, policy.Operator{})
		switch {
		case e.Name != "" && e.Protocol != "udp": // a name lets no datagram through
			if rules.Name(e.Name) != policy.Allowed && len(p.AllowDomains) < sandbox.MaxAllowDomains {
				p.AllowDomains = append(p.AllowDomains, e.Name)
			}
		case e.Address.IsValid():
			if !rules.Listed(e.Address) && len(p.AllowCIDRs) < sandbox.MaxAllowCIDRs {
				p.AllowCIDRs = append(p.AllowCIDRs, netip.PrefixFrom(e.Address, e.Address.BitLen()))
			}
		}
	}
	return p
}
