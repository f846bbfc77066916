// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Ports lists what listens in a sandbox, by port; truncated tells that there is
// more.
func (e *Engine) Ports(ctx context.Context, c access.Caller, ref string) (ports []sandbox.Port, truncated bool, err error) {
	u, err := e.use(ctx, c, access.SandboxesRead, ref, actCall)
	if err != nil {
		return nil, false, err
	}
	defer u.End()
	ports, truncated, err = u.l.client.Ports(ctx)
	if err != nil {
		return nil, false, u.Fail(ctx, err)
	}
	return ports, truncated, nil
}

// DialPort connects to a TCP port in a sandbox; one that idleness stopped is
// started. Where nothing listens it is fault.Unavailable, and with too many
// connections to one sandbox fault.Exhausted. ctx bounds the dialling only.
//
// A connection keeps its sandbox from idling while bytes flow, not by being
// open: a forgotten tab of a browser holds one for ever. It ends with the
// sandbox and with the engine. Close it.
func (e *Engine) DialPort(ctx context.Context, c access.Caller, ref string, port int) (*PortConn, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	var k check.Fields
	k.Port("port", port)
	if err := k.Err(); err != nil {
		return nil, err
	}
	u, err := e.use(ctx, c, access.SandboxesWrite, ref, actPort)
	if err != nil {
		return nil, err
	}
	if u.b.portConns.Add(1) > agent.MaxPortConns {
		u.b.portConns.Add(-1)
		u.End()
		return nil, fault.New(fault.Exhausted, "the sandbox %s has %d connections to its ports open, its bound", ref, agent.MaxPortConns).
			WithRemedy("close some, then ask again")
	}
	bound, cancel := e.group.bind(ctx)
	defer cancel()
	nc, err := u.l.client.DialPort(bound, port)
	if err != nil {
		err = u.Fail(ctx, err)
		u.b.portConns.Add(-1)
		u.End()
		return nil, err
	}
	life, stop := context.WithCancel(e.group.ctx)
	p := &PortConn{PortConn: nc, u: u, stop: stop}
	u.b.unhold(e.now(), actPort)
	context.AfterFunc(life, func() { _ = p.Close() })
	return p, nil
}

// PortConn is a connection to a port in a sandbox.
type PortConn struct {
	*agent.PortConn
	u     *Use
	stop  context.CancelFunc // of closing it with the engine
	once  sync.Once
	noted atomic.Int64 // Unix time, in seconds, of the last traffic that was noted
}

// Read notes traffic.
func (p *PortConn) Read(b []byte) (int, error) {
	n, err := p.PortConn.Read(b)
	p.note(n)
	return n, err
}

// Write notes traffic.
func (p *PortConn) Write(b []byte) (int, error) {
	n, err := p.PortConn.Write(b)
	p.note(n)
	return n, err
}

// note counts traffic against idleness, once a second.
func (p *PortConn) note(n int) {
	if n == 0 {
		return
	}
	at := time.Now().Unix()
	if was := p.noted.Load(); was != at && p.noted.CompareAndSwap(was, at) {
		p.u.b.touch(p.u.e.now(), actPort)
	}
}

// Close ends the connection. Twice is fine.
func (p *PortConn) Close() error {
	err := p.PortConn.Close()
	p.once.Do(func() {
		p.stop()
		p.u.b.portConns.Add(-1)
		p.u.e.release(p.u.b)
		p.u.e.group.leave()
	})
	return err
}
