// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package ports has the verbs about what listens in sandboxes: lists of ports, connections to them,
// and the right to see one. It stands above the engine, whose uses of a sandbox it begins. It knows
// no coat and no proxy.
package ports

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// What counts as activity, in a word for people.
const (
	useCall    = "a call by its name"
	useTraffic = "traffic of a port"
)

// Service is the verbs. All its methods are safe for concurrent use.
type Service struct {
	engine *engine.Engine
	links  heldLinks

	mu    sync.Mutex
	conns map[sandbox.ID]int // that are open
}

// New returns the verbs above an engine.
func New(e *engine.Engine) *Service {
	return &Service{engine: e, conns: make(map[sandbox.ID]int)}
}

// Ports lists what listens in a sandbox, by port; truncated tells that there is
// more.
func (s *Service) Ports(ctx context.Context, c access.Caller, ref string) (ports []sandbox.Port, truncated bool, err error) {
	c = c.Inside()
	u, err := s.engine.Use(ctx, c, access.SandboxesRead, ref, useCall)
	if err != nil {
		return nil, false, err
	}
	defer u.End()
	ports, truncated, err = u.Client().Ports(ctx)
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
func (s *Service) DialPort(ctx context.Context, c access.Caller, ref string, port int) (*Conn, error) {
	c = c.Inside()
	if err := c.Require(access.SandboxesPorts); err != nil {
		return nil, err
	}
	var k check.Fields
	k.Port("port", port)
	if err := k.Err(); err != nil {
		return nil, err
	}
	u, err := s.engine.UseUnrecorded(ctx, c, access.SandboxesPorts, ref, useTraffic)
	if err != nil {
		return nil, err
	}
	if !s.begin(u.Sandbox()) {
		u.End()
		return nil, fault.New(fault.Exhausted, "the sandbox %s has %d connections to its ports open, its bound", ref, agent.MaxPortConns).
			WithRemedy("close some, then ask again")
	}
	bound, cancel := s.engine.Bind(ctx)
	defer cancel()
	nc, err := u.Client().DialPort(bound, port)
	if err != nil {
		err = u.Fail(ctx, err)
		s.end(u.Sandbox())
		u.End()
		return nil, err
	}
	life, stop := s.engine.Bind(context.WithoutCancel(ctx))
	p := &Conn{PortConn: nc, visit: u.Rest(), over: func() { stop(); s.end(u.Sandbox()) }}
	context.AfterFunc(life, func() { _ = p.Close() })
	return p, nil
}

// begin counts one more connection to a sandbox, and reports whether it may have it.
func (s *Service) begin(id sandbox.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[id] >= agent.MaxPortConns {
		return false
	}
	s.conns[id]++
	return true
}

func (s *Service) end(id sandbox.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[id]--; s.conns[id] == 0 {
		delete(s.conns, id)
	}
}

// Conn is a connection to a port in a sandbox.
type Conn struct {
	*agent.PortConn
	visit *engine.Visit
	over  func()
	once  sync.Once
	noted atomic.Int64 // Unix time, in seconds, of the last traffic that was noted
}

// Read notes traffic.
func (p *Conn) Read(b []byte) (int, error) {
	n, err := p.PortConn.Read(b)
	p.note(n)
	return n, err
}

// Write notes traffic.
func (p *Conn) Write(b []byte) (int, error) {
	n, err := p.PortConn.Write(b)
	p.note(n)
	return n, err
}

// note counts traffic against idleness, once a second.
func (p *Conn) note(n int) {
	if n == 0 {
		return
	}
	at := time.Now().Unix()
	if was := p.noted.Load(); was != at && p.noted.CompareAndSwap(was, at) {
		p.visit.Touch(useTraffic)
	}
}

// Close ends the connection. Twice is fine.
func (p *Conn) Close() error {
	err := p.PortConn.Close()
	p.once.Do(func() {
		p.over()
		p.visit.Leave()
	})
	return err
}
