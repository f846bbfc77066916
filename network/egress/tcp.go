// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/network/policy"
	"sandpit.dev/runtime"
)

// connection is the life of one connection from the sandbox, which it closes. It calls
// decided when the connection counts as one that was let through, or as a stream of
// questions.
func (g *Gate) connection(ctx context.Context, c runtime.Conn, decided func()) {
	defer c.Close()
	to := destination(c)
	if to.Port() == dnsPort {
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		defer stop()
		select {
		case g.streams <- struct{}{}:
			defer func() { <-g.streams }()
		default:
			g.refuse(Entry{Protocol: "tcp", Address: to.Addr(), Port: to.Port()}, policy.Limit)
			reset(c)
			return
		}
		decided()
		g.answerStream(ctx, c)
		return
	}
	stop := context.AfterFunc(ctx, func() { reset(c) })
	defer stop()
	dctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &flow{to: to, close: func() { reset(c); cancel() }}
	first, why := g.admit(ctx, c, f)
	if why != policy.Allowed {
		g.explain(c, first, f, why)
		return
	}
	if !g.enter(f) {
		g.refuse(f.entry("tcp"), policy.Limit)
		reset(c)
		return
	}
	defer g.leave(f)
	decided()
	late := time.AfterFunc(dialBound, cancel)
	up, err := g.o.Dial(dctx, "tcp", to.String())
	late.Stop()
	if fault.Is(err, fault.Denied) {
		g.explain(c, first, f, policy.Host)
		return
	}
	if err != nil {
		reset(c) // as near to "refused" as an accepted connection comes
		return
	}
	defer up.Close()
	remote, ok := up.(*net.TCPConn)
	if !ok {
		return
	}
	defer context.AfterFunc(ctx, func() { reset(remote) })()
	g.mu.Lock()
	f.close = func() { reset(c); reset(remote) }
	// A cut while it was dialling closed one side only, and a policy that came later may
	// allow it again.
	gone := f.ended.Load() || ctx.Err() != nil || !f.allowed(g.state.Load().policy)
	g.mu.Unlock()
	if gone {
		reset(c)
		return
	}
	g.o.Counter.begin(remote)
	g.join(ctx, c, remote, first, f)
	g.o.Counter.end(remote, f.in.Load(), f.out.Load())
	g.met(f) // it never spoke
}

// met notes, once, that a connection was let through: as late as it takes to hear whom it
// is for, since names share addresses.
func (g *Gate) met(f *flow) {
	if f.noted.CompareAndSwap(false, true) {
		g.journal.note(f.entry("tcp"))
	}
}

func (f *flow) entry(protocol string) Entry {
	e := Entry{Protocol: protocol, Address: f.to.Addr(), Port: f.to.Port()}
	if n := f.name.Load(); n != nil {
		e.Name = *n
	}
	return e
}

// admit decides whether a connection is let through, and returns the bytes that it
// had to read for that.
func (g *Gate) admit(ctx context.Context, c runtime.Conn, f *flow) ([]byte, policy.Reason) {
	p := g.state.Load().policy
	named := g.remember(p, f)
	why := p.Connection(f.to, named)
	if why != policy.Address || p.Learning() { // who learns keeps no program waiting
		return nil, g.learn(p, f, why)
	}
	// No question was asked here for a name with this address. The program may have asked
	// an earlier server; then what it says names the host.
	first, _, name := g.listen(ctx, c)
	if name == "" || p.Name(name) != policy.Allowed {
		if name != "" {
			f.name.Store(&name)
		}
		if name != "" {
			return first, policy.Domain
		}
		return first, policy.Address
	}
	if rule := g.quotas.take(p, name, time.Now()); rule != "" {
		f.name.Store(&rule)
		return first, policy.Names
	}
	lctx, cancel := context.WithTimeout(ctx, resolveBound)
	defer cancel()
	addrs, err := g.lookup(lctx, p, name, f.to.Addr().Is6())
	if err == nil {
		for _, a := range addrs {
			if a == f.to.Addr() {
				f.name.Store(&name)
				return first, p.Connection(f.to, p.AddressOf(name, f.to.Addr()) == policy.Allowed)
			}
		}
	}
	return first, policy.Disagreement
}

// remember finds an allowed name that the flow's address was answered for. Where the
// policy learns, any name is better than none.
func (g *Gate) remember(p *policy.Policy, f *flow) bool {
	for _, name := range g.pins.names(f.to.Addr()) {
		allowed := p.Name(name) == policy.Allowed && p.AddressOf(name, f.to.Addr()) == policy.Allowed
		if allowed || p.Learning() {
			f.name.Store(&name)
		}
		if allowed {
			return true
		}
	}
	return false
}

// learn lets a refusal pass where the policy learns.
func (g *Gate) learn(p *policy.Policy, f *flow, why policy.Reason) policy.Reason {
	if why == policy.Allowed || !p.Learning() || !why.Learnable() {
		return why
	}
	e := f.entry("tcp")
	e.Reason, e.Learned = why, true
	g.journal.note(e)
	return policy.Allowed
}

// listen reads the first bytes of a connection, until they tell who is meant.
func (g *Gate) listen(ctx context.Context, c runtime.Conn) (first []byte, what speech, name string) {
	_ = c.SetReadDeadline(time.Now().Add(firstBound))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	buf := make([]byte, 4096)
	for len(first) < maxFirst && ctx.Err() == nil {
		n, err := c.Read(buf)
		first = append(first, buf[:n]...)
		if what, name = sniff(first); what != unclear || err != nil {
			break
		}
	}
	return first, what, name
}

// join carries the bytes of both sides until both have ended, or one failed. first was
// read already.
func (g *Gate) join(ctx context.Context, c runtime.Conn, remote *net.TCPConn, first []byte, f *flow) {
	pass := func(to, from runtime.Conn, sum *atomic.Int64) (n int64) {
		n, err := io.Copy(to, from)
		sum.Add(n)
		if err == nil {
			_ = to.CloseWrite()
		} else if !f.told.Load() && !f.taken.Load() { // a reset would take the words away
			reset(c)
			reset(remote)
		}
		return n
	}
	var both sync.WaitGroup
	said := make(chan int64, 1) // how much by the server
	both.Go(func() { said <- pass(c, remote, &f.in) })
	first, ok := g.overhear(c, remote, first, f)
	b := f.carries.Load()
	switch {
	case !ok:
	case b == nil:
		pass(remote, c, &f.out)
	default:
		f.taken.Store(true)
		_ = remote.SetReadDeadline(time.Unix(1, 0))
		n := <-said
		_ = remote.SetReadDeadline(time.Time{})
		if n > 0 { // no server of TLS speaks first
			reset(c)
			reset(remote)
			break
		}
		g.o.Counter.end(remote, 0, 0) // its bytes are counted as they pass
		g.inject(ctx, c, remote, first, f, b)
	}
	both.Wait()
}

// overhear passes on what the program says first, once the host that it names there
// is seen to be allowed. A protocol whose server speaks first is not kept waiting.
// What a host is told that a secret is bound to is not passed on, but given.
// False: the connection was cut.
func (g *Gate) overhear(c, remote runtime.Conn, first []byte, f *flow) ([]byte, bool) {
	buf := make([]byte, 4096)
	for {
		what, name := sniff(first)
		why, pass := g.judge(f, first, what, name)
		if why != policy.Allowed {
			e := f.entry("tcp")
			if name != "" {
				e.Name = name
			}
			words := g.refuse(e, why)
			f.told.Store(true)
			f.noted.Store(true)
			reset(remote)
			if !words {
				reset(c)
				return nil, false
			}
			tell(c, what, why.Explain(e.what()))
			return nil, false
		}
		if pass {
			g.mention(f, what, name)
			g.met(f)
			break
		}
		n, err := c.Read(buf)
		first = append(first, buf[:n]...)
		if err == nil || n > 0 {
			continue
		}
		if errors.Is(err, io.EOF) && len(first) == 0 {
			return nil, true // it only listens
		}
		// What is cut short may still mean something to the server.
		reset(c)
		reset(remote)
		return nil, false
	}
	if f.carries.Load() != nil {
		return first, true
	}
	if len(first) > 0 {
		n, err := remote.Write(first)
		f.out.Add(int64(n))
		if err != nil {
			reset(c)
			reset(remote)
			return nil, false
		}
	}
	return nil, true
}

// judge decides by the policy and the keys of this moment what becomes of the first bytes:
// they are refused, passed on, or more are needed. What was said is noted under the lock, so that
// a policy that comes later cuts the flow, and one that came before was asked.
func (g *Gate) judge(f *flow, first []byte, what speech, name string) (why policy.Reason, pass bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.state.Load()
	p := now.policy
	bound := now.keys.carried(what, name)
	if what == speaksHTTP && !g.answered(f, name) {
		bound = nil // nothing vouches for whose address it is
	}
	switch {
	case bound != nil && (p.Learning() || p.Listed(f.to.Addr())):
	case p.Learning() || p.Listed(f.to.Addr()):
		if now.keys != nil && what == unclear && (len(first) == 0 || first[0] == recordHandshake || len(now.keys.headers) > 0) {
			return policy.Allowed, false // it may yet name a host that takes a secret, or a header
		}
		if now.keys == nil || what != speaksTLS {
			f.said.Store(unheard)
			return policy.Allowed, true
		}
	case what == malformed, !p.Open() && what == speaksTLS && name == "":
		// The server chooses whom a hello without a name means.
		return policy.Protocol, false
	case what == unclear:
		return policy.Allowed, false
	case name != "" && p.Name(name) == policy.Denied:
		return policy.Denied, false
	case name != "" && p.Name(name) != policy.Allowed:
		return policy.Disagreement, false
	}
	f.carries.Store(bound)
	f.secure.Store(what == speaksTLS)
	f.said.Store(&name)
	if name != "" && g.pins.has(name, f.to.Addr()) {
		f.name.Store(&name) // of the names that share the address this is the one
	}
	return policy.Allowed, true
}

// answered reports whether a connection goes to an address that was the answer for a name: a program may write any
// name into a request that is not by TLS.
func (g *Gate) answered(f *flow, name string) bool {
	n := f.name.Load()
	return n != nil && *n == name || g.pins.has(name, f.to.Addr())
}

// mention notes what a connection to a host is that a secret is bound to.
func (g *Gate) mention(f *flow, what speech, name string) {
	now := g.state.Load()
	b := now.keys.binding(name)
	if b == nil || what == speaksHTTP && !b.secret() {
		return
	}
	e := f.entry("tcp")
	e.Name = name
	if what == speaksHTTP {
		g.refuse(e, policy.Plaintext)
		return
	}
	if why := now.policy.Name(name); why != policy.Allowed && now.policy.Learning() {
		e.Reason, e.Learned = why, true
	}
	f.noted.Store(true)
	g.journal.note(e)
}

// explain refuses a connection in words, where the program's protocol has any.
func (g *Gate) explain(c runtime.Conn, first []byte, f *flow, why policy.Reason) {
	e := f.entry("tcp")
	if !g.refuse(e, why) {
		reset(c)
		return
	}
	what, _ := sniff(first)
	if len(first) == 0 {
		// It is connected already. What it says tells how to answer.
		_ = c.SetReadDeadline(time.Now().Add(explainBound))
		buf := make([]byte, 4096)
		n, _ := c.Read(buf)
		what, _ = sniff(buf[:n])
		if n > 0 && what == unclear {
			what = speaksHTTP
			if buf[0] == recordHandshake {
				what = speaksTLS
			}
		}
	}
	tell(c, what, why.Explain(e.what()))
}

// explainBound is how long a refused program may take to say its first bytes.
const explainBound = 2 * time.Second

// Unlisted reports whether e was refused since its name is not on the list.
func (e Entry) Unlisted() bool { return e.Reason == policy.Domain }

// Explain says in a line for people what became of it.
func (e Entry) Explain() string { return e.Reason.Explain(e.what()) }

func (e Entry) what() string {
	switch {
	case e.Name != "" && !e.Address.IsValid():
		return e.Name
	case e.Name != "":
		return fmt.Sprintf("%s (%s)", e.Name, netip.AddrPortFrom(e.Address, e.Port))
	case e.Address.IsValid():
		return netip.AddrPortFrom(e.Address, e.Port).String()
	}
	return "the host"
}

// tell ends a connection with a text, an alert or a reset.
func tell(c runtime.Conn, what speech, text string) {
	_ = c.SetDeadline(time.Now().Add(explainBound))
	switch what {
	case speaksHTTP:
		body := "sandpit: " + text + "\n"
		_, _ = fmt.Fprintf(c, "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\nX-Sandpit-Refused: network\r\n\r\n%s", len(body), body)
	case speaksTLS:
		const alert, fatal, accessDenied = 21, 2, 49
		_, _ = c.Write([]byte{alert, 3, 3, 0, 2, fatal, accessDenied})
	default:
		reset(c)
		return
	}
	// What it still sends must be read, or the kernel resets and the text is lost.
	_ = c.CloseWrite()
	_, _ = io.CopyN(io.Discard, c, maxFirst)
	_ = c.Close()
}

// reset ends a connection at once.
func reset(c runtime.Conn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// destination is where a connection was meant to go.
func destination(c runtime.Conn) netip.AddrPort {
	a, _ := c.LocalAddr().(*net.TCPAddr)
	to := a.AddrPort()
	return netip.AddrPortFrom(to.Addr().Unmap().WithZone(""), to.Port())
}
