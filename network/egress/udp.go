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

	"sandpit.dev/fault"
	"sandpit.dev/network/policy"
	"sandpit.dev/runtime"
)

// path is where datagrams go from and to.
type path struct{ from, to netip.AddrPort }

// datagram passes a datagram on. Only addresses that the policy names itself are
// reached by datagrams: those to pinned addresses (QUIC, mostly) hide whom they mean,
// and programs go on with TCP where no answer comes.
func (g *Gate) datagram(ctx context.Context, work *sync.WaitGroup, t runtime.Traffic, b []byte, from, to netip.AddrPort) {
	way := path{from, to}
	g.mu.Lock()
	known, full := g.paths[way], g.open[datagrams] >= maxPaths
	g.mu.Unlock()
	if known != nil { // it was on its way before the path was
		if _, err := known.Write(b); err == nil {
			g.o.Counter.out.Add(int64(len(b)))
		}
		return
	}
	p := g.state.Load().policy
	f := &flow{to: to, kind: datagrams}
	why := p.Connection(to, false)
	if why == policy.Address && g.remember(p, f) {
		why = policy.Protocol
	}
	if why != policy.Allowed {
		e := f.entry("udp")
		if !p.Learning() || !why.Learnable() {
			g.refuse(e, why)
			return
		}
		e.Reason, e.Learned = why, true
		g.journal.note(e)
	}
	if full { // before sockets are made for it
		g.refuse(f.entry("udp"), policy.Limit)
		return
	}
	inside, err := t.Answering(to, from)
	if err != nil {
		return
	}
	dctx, cancel := context.WithTimeout(ctx, dialBound)
	outside, err := g.o.Dial(dctx, "udp", to.String())
	cancel()
	if err != nil {
		_ = inside.Close()
		if fault.Is(err, fault.Denied) {
			g.refuse(f.entry("udp"), policy.Host)
		}
		return
	}
	f.close = func() { _ = inside.Close(); _ = outside.Close() }
	if !g.enter(f) {
		f.cut()
		g.refuse(f.entry("udp"), policy.Limit)
		return
	}
	g.mu.Lock()
	g.paths[way] = outside
	g.mu.Unlock()
	g.journal.note(f.entry("udp"))
	if _, err := outside.Write(b); err == nil {
		g.o.Counter.out.Add(int64(len(b)))
	}
	var last atomic.Int64
	last.Store(time.Now().UnixNano())
	var both sync.WaitGroup
	both.Go(func() { carry(inside, outside, &last, &g.o.Counter.in); f.cut() })
	both.Go(func() { carry(outside, inside, &last, &g.o.Counter.out); f.cut() })
	work.Go(func() {
		both.Wait()
		g.mu.Lock()
		delete(g.paths, way)
		g.mu.Unlock()
		g.leave(f)
	})
	if ctx.Err() != nil { // all that was open was cut already
		f.cut()
	}
}

// carry passes datagrams on until either side is closed or both were quiet for long.
func carry(to, from net.Conn, last, sum *atomic.Int64) {
	b := make([]byte, maxDatagram)
	for {
		_ = from.SetReadDeadline(time.Now().Add(quietPath))
		n, err := from.Read(b)
		if err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() && time.Since(time.Unix(0, last.Load())) < quietPath {
				continue // the other direction was not quiet
			}
			return
		}
		last.Store(time.Now().UnixNano())
		switch _, err := to.Write(b[:n]); {
		case err == nil:
			sum.Add(int64(n))
		case n <= maxSafeDatagram:
			return
		}
	}
}

// maxSafeDatagram is what no path is too narrow for: a write of more may fail for its size.
const maxSafeDatagram = 1200
