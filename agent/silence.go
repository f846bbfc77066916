// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// An agent sends its first byte within microseconds, but some calls take long: a large directory
// is removed, a killed process does not end. So where nothing comes for wordBound, the Client
// asks for a sign of life on a connection of its own, and an agent counts as silent only if it
// does not send one within signBound. The call ends then.
const (
	wordBound = 5 * time.Second
	signBound = 5 * time.Second
	// SilenceBound is the longest that a call waits for a silent agent.
	SilenceBound = wordBound + signBound
	// dialPause is how long a full queue of connections may stand still.
	dialPause = 20 * time.Millisecond
)

// ErrSilent is in the error of a call whose agent sent nothing for [SilenceBound].
var ErrSilent = errors.New("the agent is silent")

// Silent returns the error of a call to a silent agent.
func Silent() error {
	err := fault.Wrap(fault.Unavailable, ErrSilent, "the sandbox's process 1 does not answer")
	err.Retry = signBound
	return err.WithRemedy("wait and ask again, or stop the sandbox and start it again: that ends its processes and keeps its disk")
}

// silence is the state of a Client's check for a silent agent.
type silence struct {
	frozen func() bool
	told   func(silent bool)

	since   atomic.Int64  // UnixNano; 0: it is not silent
	probing chan struct{} // held by the one call that asks for a sign of life
	// Of the last probe, guarded by probing.
	asked time.Time
	found error
}

func newSilence() silence { return silence{probing: make(chan struct{}, 1)} }

// Observe sets two functions before the first call. The Client asks frozen whether the sandbox is
// frozen, so that its agent cannot answer and is alive nevertheless, and calls told whenever the
// agent falls silent or answers again. told must not block.
func (c *Client) Observe(frozen func() bool, told func(silent bool)) {
	c.silence.frozen, c.silence.told = frozen, told
}

// SilentSince returns since when the agent has not answered. It is zero while it does, as
// far as is known.
func (c *Client) SilentSince() time.Time {
	if ns := c.silence.since.Load(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}

// Answered records that the agent is not silent any more, or is gone.
func (c *Client) Answered() {
	if c.silence.since.Load() != 0 && c.silence.since.Swap(0) != 0 && c.silence.told != nil {
		c.silence.told(false)
	}
}

func (c *Client) fellSilent(since time.Time) {
	if c.silence.since.CompareAndSwap(0, since.UnixNano()) && c.silence.told != nil {
		c.silence.told(true)
	}
}

// alive returns nil if the agent shows a sign of life, or its sandbox is frozen, and else why it
// does not. since is when the caller began to wait. Of several calls that ask at a time one goes
// and the others share what it found.
func (c *Client) alive(ctx context.Context, since time.Time) error {
	sl := &c.silence
	select {
	case sl.probing <- struct{}{}:
		defer func() { <-sl.probing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if sl.frozen != nil && sl.frozen() {
		return nil
	}
	if sl.asked.After(since) {
		return sl.found
	}
	asked := time.Now()
	limit, cancel := context.WithTimeout(ctx, signBound)
	err := c.sign(limit)
	late := limit.Err() != nil
	cancel()
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // which says nothing of the agent
	case err == nil:
		c.Answered()
	case sl.frozen != nil && sl.frozen():
		return nil
	case late:
		c.fellSilent(since)
		err = Silent()
	}
	sl.asked, sl.found = asked, err
	return err
}

// sign asks for a sign of life, for as long as ctx.
func (c *Client) sign(ctx context.Context) error {
	s, err := c.open(ctx, &wire.Request{Op: wire.OpPing}, false)
	if err != nil {
		return err
	}
	defer s.close()
	return s.reply(nil)
}

// connect dials. An agent whose queue of connections is full accepts none while it is stopped,
// and soon accepts some if it is busy.
func (c *Client) connect(ctx context.Context, guarded bool) (net.Conn, error) {
	began := time.Now()
	for {
		nc, err := c.dial(ctx)
		if !errors.Is(err, syscall.EAGAIN) {
			return nc, err
		}
		if guarded && time.Since(began) >= SilenceBound && (c.silence.frozen == nil || !c.silence.frozen()) {
			c.fellSilent(began)
			return nil, Silent()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(dialPause):
		}
	}
}

// read reads a frame. A call that is bound to a context does not wait for ever for a silent
// agent.
func (s *stream) read() (wire.Type, []byte, error) {
	if !s.guarded {
		return s.r.Next()
	}
	for began := time.Now(); ; {
		if !s.reads {
			s.reads = true
			s.limit(s.SetReadDeadline, began.Add(wordBound))
		}
		t, p, err := s.r.Next()
		if err == nil {
			s.c.Answered()
			return t, p, nil
		}
		if !isTimeout(err) || s.ctx.Err() != nil {
			return 0, nil, err
		}
		if s.reads = false; time.Since(began) < wordBound {
			continue // the deadline was that of a frame before
		}
		if err := s.c.alive(s.ctx, began); err != nil {
			return 0, nil, err
		}
		began = time.Now()
	}
}

// freshRoom is how much of a call a new connection buffers, read or not.
const freshRoom = 64 << 10

// send writes b. It waits while the agent accepts nothing but shows a sign of life.
func (s *stream) send(b []byte) error {
	if !s.guarded {
		_, err := s.Write(b)
		return err
	}
	s.sent += len(b)
	for began := time.Now(); ; {
		if !s.writes && s.sent > freshRoom {
			s.writes = true
			s.limit(s.SetWriteDeadline, time.Now().Add(wordBound))
		}
		n, err := s.Write(b)
		if err == nil {
			return nil
		}
		if !isTimeout(err) || s.ctx.Err() != nil {
			return err
		}
		s.writes = false
		if b = b[n:]; n > 0 || time.Since(began) < wordBound {
			if n > 0 {
				began = time.Now()
			}
			continue
		}
		if err := s.c.alive(s.ctx, began); err != nil {
			return err
		}
		began = time.Now()
	}
}

// patient makes the rest of the call wait for the agent for as long as the call's context.
func (s *stream) patient() {
	s.guarded = false
	if s.reads {
		s.limit(s.SetReadDeadline, time.Time{})
	}
}

// limit sets a deadline, unless the call's context has ended: then its own is past.
func (s *stream) limit(set func(time.Time) error, at time.Time) {
	_ = set(at)
	if s.ctx.Err() != nil {
		_ = set(time.Unix(1, 0))
	}
}

// detach unbinds the stream from its context, and reports whether the context had not ended.
func (s *stream) detach() bool {
	if !s.stop() {
		return false
	}
	s.ctx, s.guarded = nil, false
	if s.reads || s.writes {
		_ = s.SetDeadline(time.Time{})
	}
	return true
}

// attach binds a stream that was detached to a context again.
func (s *stream) attach(ctx context.Context) {
	_ = s.SetDeadline(time.Time{})
	s.ctx, s.guarded, s.reads, s.writes = ctx, true, false, false
	s.stop = context.AfterFunc(ctx, func() { _ = s.SetDeadline(time.Unix(1, 0)) })
}
