// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mux

import (
	"context"
	"net"

	"github.com/hashicorp/yamux"
)

// Dialer makes the connections of a client over one stream, which it opens when the first is
// wanted, and anew after it broke. A call that a stream broke under is the caller's to make again: it may
// have begun. Safe for concurrent use.
type Dialer struct {
	dial func(ctx context.Context) (net.Conn, error)

	turn chan struct{} // guards what follows
	s    *yamux.Session
	uses *yielding // of its streams
	over bool
}

// NewDialer returns a Dialer whose streams dial makes. It dials nothing yet.
func NewDialer(dial func(ctx context.Context) (net.Conn, error)) *Dialer {
	return &Dialer{dial: dial, turn: make(chan struct{}, 1), uses: newYielding()}
}

// DialContext opens a connection. ctx bounds that alone.
func (d *Dialer) DialContext(ctx context.Context) (net.Conn, error) {
	for first := true; ; first = false {
		s, fresh, err := d.session(ctx)
		if err != nil {
			return nil, err
		}
		st, err := open(ctx, s)
		if err == nil {
			return newConn(st, d.uses), nil
		}
		// Nothing of the call was sent. A stream that was there may have broken long ago.
		if ctx.Err() != nil || fresh || !first || !s.IsClosed() {
			return nil, plainly("dial", err)
		}
	}
}

// session returns the stream that there is, or a fresh one.
func (d *Dialer) session(ctx context.Context) (s *yamux.Session, fresh bool, err error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if d.over {
		return nil, false, net.ErrClosed
	}
	if d.s != nil && !d.s.IsClosed() {
		return d.s, false, nil
	}
	nc, err := d.dial(ctx)
	if err != nil {
		return nil, false, err
	}
	if s, err = yamux.Client(&frames{Conn: nc, checks: true}, config(lingering)); err != nil {
		_ = nc.Close()
		return nil, false, err
	}
	d.s = s
	return s, true, nil
}

// open opens a stream, or gives up with ctx. The goroutine ends with the session at the latest.
func open(ctx context.Context, s *yamux.Session) (*yamux.Stream, error) {
	type result struct {
		st  *yamux.Stream
		err error
	}
	opened := make(chan result)
	go func() {
		st, err := s.OpenStream()
		select {
		case opened <- result{st, err}:
		case <-ctx.Done():
			if err == nil {
				_ = st.Close()
			}
		}
	}()
	select {
	case r := <-opened:
		return r.st, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close ends the stream and all that goes over it. Afterwards nothing is dialled.
func (d *Dialer) Close() error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	d.over = true
	if d.s == nil {
		return nil
	}
	return d.s.Close()
}
