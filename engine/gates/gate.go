// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"sync"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/internal/seal"
	"sandpit.dev/network/egress"
	"sandpit.dev/network/policy"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Options is what the operator says of all sandboxes' gates.
type Options struct {
	Operator policy.Operator
	Quota    egress.Quota                                                         // of names that sandboxes make up; its zero value is the default
	Resolver egress.Resolver                                                      // nil: the host's
	Dial     func(ctx context.Context, network, address string) (net.Conn, error) // nil: the host's
	Roots    *x509.CertPool                                                       // that hosts of bound secrets are verified by; nil: the host's
	// Builds is the project of the sandboxes in which images are built, which no token can have: the
	// host's own package mirrors may have private addresses there. "": none.
	Builds string
	// Authorities are certificates in PEM that sandboxes with a network trust besides the usual ones.
	Authorities []byte
}

// Needs are what gates take of the engine beside its core. All are required.
type Needs struct {
	Secrets *secrets.Cache
	Ring    *seal.Ring
	Wall    func() time.Time       // the host's clock
	Context func() context.Context // ends with the engine
}

// Gates makes gates. It is safe for concurrent use.
type Gates struct {
	core   *core.Core
	o      Options
	n      Needs
	shares egress.Shares
}

// New makes one. It starts nothing.
func New(c *core.Core, o Options, n Needs) *Gates { return &Gates{core: c, o: o, n: n} }

// Life is one time of a sandbox of being up.
type Life struct {
	ID       sandbox.ID
	Record   func() *sandbox.Sandbox // nil: it is deleted
	Instance runtime.Instance
	Client   *agent.Client
	Silent   func() bool // what is inside cannot be changed: it is frozen, or its agent says nothing
	Again    func()      // has the engine look at it again, in a while
}

// Of returns the gate of a life, which is shut.
func (g *Gates) Of(l Life) *Gate { return &Gate{g: g, Life: l} }

// Gate is the network of one time of being up. It is safe for concurrent use, but for Open and Bind, of which its
// caller has the sandbox's turn.
type Gate struct {
	Life
	g *Gates

	mu   sync.Mutex
	gate *egress.Gate // nil: nothing leaves
	end  context.CancelFunc
	done chan struct{} // closed when the gate is

	logMu   sync.Mutex
	journal *egress.Journal
	since   time.Time

	bound   boundSecrets
	carried egress.Counter
}

// waitingNews is how many refusals wait to be recorded as events; the journal has those that find no room, too.
const waitingNews = 64

// ErrNone is that a runtime gives sandboxes no network.
var ErrNone = errors.New("the runtime gives sandboxes no network")

// Open makes the instance's network what p says, at once. After an error it has none.
func (o *Gate) Open(ctx context.Context, p sandbox.NetworkPolicy) error {
	bind, err := o.open(ctx, p)
	if bind {
		o.Bind(ctx)
	}
	return err
}

// open is Open without what bound secrets and headers need, and tells whether that is other now.
func (o *Gate) open(ctx context.Context, p sandbox.NetworkPolicy) (bind bool, err error) {
	g := o.g
	if p.Mode != sandbox.NetworkRestricted && p.Mode != sandbox.NetworkOpen {
		o.Close()
		return false, nil
	}
	operator := g.o.Operator
	operator.Mirrors = g.o.Builds != "" && o.Record().Project == g.o.Builds
	rules := policy.New(p, operator)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gate != nil {
		select {
		case <-o.done: // its traffic ended by itself
		default:
			was := o.gate.Policy().Of().Headers
			o.gate.SetPolicy(rules)
			return !was.Equal(p.Headers), nil
		}
	}
	n, ok := o.Instance.(runtime.Networker)
	if !ok {
		return false, ErrNone
	}
	traffic, err := n.Steer(ctx)
	if err != nil {
		return false, err
	}
	news := make(chan *egress.Entry, waitingNews)
	journal := egress.NewJournal(func(x egress.Entry) {
		if x.Secret == "" && (x.Reason == policy.Allowed || x.Learned) {
			return
		}
		select {
		case news <- &x:
		default:
		}
	})
	o.logMu.Lock()
	o.journal, o.since = journal, g.core.Now()
	o.logMu.Unlock()
	project := o.Record().Project
	share := g.shares.Open(project)
	gate := egress.NewGate(egress.Options{Share: share, Refused: func() { g.core.Metrics.Refused(project) }, Policy: rules, Journal: journal, Resolver: g.o.Resolver, Dial: g.o.Dial, Quota: g.o.Quota, Roots: g.o.Roots, Counter: &o.carried})
	gctx, end := context.WithCancel(g.n.Context())
	done := make(chan struct{})
	o.gate, o.end, o.done = gate, end, done
	g.core.Spawn(func(context.Context) {
		defer close(done)
		defer share.Close()
		var recorder sync.WaitGroup
		recorder.Go(func() { o.recordRefusals(gctx, news) })
		gate.Serve(gctx, traffic)
		if gctx.Err() == nil { // what carried it broke: it is set up again
			o.Again()
		}
		end()
		recorder.Wait()
	})
	return true, nil
}

// Carried returns what the network carried since the gate was made, or false where the runtime gives sandboxes none.
func (o *Gate) Carried() (egress.Carried, bool) {
	if _, ok := o.Instance.(runtime.Networker); !ok {
		return egress.Carried{}, false
	}
	return o.carried.Carried(), true
}

// Close ends the network, and waits until nothing of it is left.
func (o *Gate) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gate == nil {
		return
	}
	o.end()
	<-o.done
	o.gate = nil
}

// Differs reports whether what is in force is not what p asks for.
func (o *Gate) Differs(p sandbox.NetworkPolicy) bool {
	wants := p.Mode == sandbox.NetworkRestricted || p.Mode == sandbox.NetworkOpen
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gate == nil {
		return wants
	}
	select {
	case <-o.done:
		return wants
	default:
		return !wants || !o.gate.Policy().Of().Equal(p)
	}
}

// recordRefusals appends an event for each thing that was refused for the first time, until ctx is done.
func (o *Gate) recordRefusals(ctx context.Context, news <-chan *egress.Entry) {
	for {
		var batch []*egress.Entry
		select {
		case x := <-news:
			batch = append(batch, x)
		case <-ctx.Done():
			return
		}
		for more := true; more && len(batch) < waitingNews; {
			select {
			case x := <-news:
				batch = append(batch, x)
			default:
				more = false
			}
		}
		s := o.Record()
		if s == nil {
			return
		}
		if o.g.core.Store.Room() != nil { // the log of its network has them
			continue
		}
		events := make([]*sandbox.Event, len(batch))
		for i, x := range batch {
			ev := core.System.Event(sandbox.EventNetworkRefused, s, x.First)
			ev.OK, ev.Detail = false, sandbox.Clip(x.Protocol+": "+x.Explain(), sandbox.MaxEventDetail)
			if x.Secret != "" {
				ev.Type, ev.OK, ev.Detail = sandbox.EventSecretUsed, true, x.Secret+" in a request to "+x.Name
			}
			events[i] = ev
		}
		cctx, cancel := core.Aside(ctx)
		err := o.g.core.Store.Update(cctx, func(tx store.Tx) error { return core.AppendAll(tx, events) })
		cancel()
		if err != nil {
			o.g.core.Log.Warn("refusals of a sandbox's network cannot be recorded", "sandbox", o.ID, "error", err)
			continue
		}
		o.g.core.Metrics.Happened(events)
	}
}

// Log returns what was tried since the gate was opened, the latest first, and how many entries more there were. A
// zero time: it was not opened.
func (o *Gate) Log() (since time.Time, entries []egress.Entry, dropped int64) {
	o.logMu.Lock()
	defer o.logMu.Unlock()
	if o.journal == nil {
		return time.Time{}, nil, 0
	}
	entries, dropped = o.journal.Entries()
	return o.since, entries, dropped
}
