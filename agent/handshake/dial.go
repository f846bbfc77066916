// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package handshake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"sandpit.dev/fault"
)

const (
	// patience bounds one handshake, which takes two ways and less than a millisecond of work.
	patience = 5 * time.Second
	// tries is how often one is begun anew where the agent hangs up: while strangers
	// crowd at its door, it does that to the one of them who has waited longest.
	tries = 20
)

// Dialer connects to an agent that has a key. It is safe for concurrent use.
type Dialer struct {
	Dial func(ctx context.Context) (net.Conn, error) // makes the connection below
	Key  *Key
	What Carries
}

// DialContext returns a connection that is begun. ctx bounds the dialling only.
func (d *Dialer) DialContext(ctx context.Context) (net.Conn, error) {
	for n := 1; ; n++ {
		c, err := d.once(ctx)
		switch {
		case err == nil:
			return c, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, ErrRefused) && n < tries:
			continue
		case errors.Is(err, ErrRefused), errors.Is(err, ErrNoAgent), errors.Is(err, ErrImpostor):
			return nil, fault.Wrap(fault.Unavailable, err, "the sandbox's agent cannot be reached: %s", err).
				WithRemedy("stop the sandbox and start it again: that gives its agent a new key")
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			// As a socket says that takes no connection now: the agent may be stopped, or busy.
			err = fmt.Errorf("the agent does not answer the handshake within %v: %w", patience, syscall.EAGAIN)
		}
		return nil, err
	}
}

func (d *Dialer) once(ctx context.Context) (net.Conn, error) {
	nc, err := d.Dial(ctx)
	if err != nil {
		return nil, err
	}
	_ = nc.SetDeadline(time.Now().Add(patience))
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	c, err := Server(nc, d.Key, d.What)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	_ = nc.SetDeadline(time.Time{})
	return c, nil
}
