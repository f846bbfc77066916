// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/agent/mux"
)

const (
	// maxStrangers is how many may be connected that have not shown the key yet.
	maxStrangers = 128
	// patience is how long each may take for that.
	patience = 5 * time.Second
	// grace is how long each has for that, however many others come: they wait to be accepted.
	grace = 100 * time.Millisecond
	// acceptPause is how long a listener rests that has no descriptors left.
	acceptPause = 50 * time.Millisecond
)

// errUnknown is of a server that wants what this agent does not have.
var errUnknown = errors.New("the server asks for a kind of connection that this agent does not know")

// Door is a listener of calls from who knows a key. They come through what Run and Carry are given.
type Door struct {
	// Traffic has connections that carry traffic, and closes them; nil: there are none. It is set before Run and Carry.
	Traffic func(ctx context.Context, nc net.Conn) error

	key   *handshake.Key
	calls chan net.Conn
	done  chan struct{}
	once  sync.Once

	mu        sync.Mutex
	strangers []stranger    // oldest first
	left      chan struct{} // holds one token after one has left
}

// stranger is who has not shown the key yet.
type stranger struct {
	nc net.Conn
	at time.Time // when it came
}

// New makes a door that nobody has come to.
func New(key *handshake.Key) *Door {
	return &Door{key: key, calls: make(chan net.Conn), done: make(chan struct{}), left: make(chan struct{}, 1)}
}

// Accept waits for the next call. After Close it is net.ErrClosed.
func (d *Door) Accept() (net.Conn, error) {
	select {
	case nc := <-d.calls:
		return nc, nil
	case <-d.done:
		return nil, net.ErrClosed
	}
}

// Close lets nobody in any more. It ends neither Run nor Carry: their contexts do.
func (d *Door) Close() error {
	d.once.Do(func() { close(d.done) })
	return nil
}

// Addr is no address: the door may have many.
func (d *Door) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// Run carries whoever connects to l, until ctx is done. Then it closes l and the connections, and
// waits for what it began. The error is nil then, and else that of l.
func (d *Door) Run(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			if d.admit(ctx, nc) != nil {
				return nil
			}
			all.Go(func() { _ = d.carry(ctx, nc) }) // a stranger's reasons are its own
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.ECONNABORTED):
			select { // the kernel would give us the same connection at once
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
		default:
			_ = l.Close()
			return err
		}
	}
}

// Carry has who is at the other end of nc show that it knows the key, and lets its calls in until it
// ends, or ctx does. nc is closed by then, if it carried more than one call; one call closes it.
func (d *Door) Carry(ctx context.Context, nc net.Conn) error {
	if err := d.admit(ctx, nc); err != nil {
		return err
	}
	return d.carry(ctx, nc)
}

// carry is Carry of who was admitted.
func (d *Door) carry(ctx context.Context, nc net.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	c, what, err := d.welcome(nc)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = nc.Close()
		return err
	}
	switch what {
	case handshake.OneCall:
		if !d.let(ctx, c) {
			return c.Close()
		}
		return nil
	case handshake.ManyCalls:
		return d.carryMany(ctx, c)
	case handshake.Traffic:
		if d.Traffic != nil {
			return d.Traffic(ctx, c)
		}
	}
	_ = c.Close()
	return errUnknown
}

// admit takes a stranger in, and has the one go that came first if there are too many and it had its grace. It closes nc if
// ctx is done before there is room.
func (d *Door) admit(ctx context.Context, nc net.Conn) error {
	for {
		wait := d.enter(nc)
		if wait <= 0 {
			return nil
		}
		t := time.NewTimer(wait)
		select {
		case <-d.left:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		if err := ctx.Err(); err != nil {
			_ = nc.Close()
			return err
		}
	}
}

// enter takes a stranger in if there is room, and returns how long to wait for some if not.
func (d *Door) enter(nc net.Conn) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if len(d.strangers) == maxStrangers {
		if wait := grace - now.Sub(d.strangers[0].at); wait > 0 {
			return wait
		}
		_ = d.strangers[0].nc.Close()
		d.strangers = d.strangers[1:]
	}
	d.strangers = append(d.strangers, stranger{nc, now})
	return 0
}

// dismiss takes nc off the strangers.
func (d *Door) dismiss(nc net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.strangers, func(s stranger) bool { return s.nc == nc })
	if i < 0 {
		return
	}
	d.strangers = slices.Delete(d.strangers, i, i+1)
	select {
	case d.left <- struct{}{}:
	default:
	}
}

// welcome is the handshake.
func (d *Door) welcome(nc net.Conn) (*handshake.Conn, handshake.Carries, error) {
	defer d.dismiss(nc)
	_ = nc.SetDeadline(time.Now().Add(patience))
	c, what, err := handshake.Agent(nc, d.key, func() { d.dismiss(nc) })
	if err == nil {
		err = nc.SetDeadline(time.Time{})
	}
	return c, what, err
}

// let hands a call over, and reports whether there was anybody to take it.
func (d *Door) let(ctx context.Context, nc net.Conn) bool {
	select {
	case d.calls <- nc:
		return true
	case <-d.done:
	case <-ctx.Done():
	}
	return false
}

func (d *Door) carryMany(ctx context.Context, c *handshake.Conn) error {
	a, err := mux.NewAgent(c)
	if err != nil {
		_ = c.Close()
		return err
	}
	defer a.Close()
	stop := context.AfterFunc(ctx, func() { _ = a.Close() })
	defer stop()
	for {
		nc, err := a.Accept()
		if err != nil {
			return err
		}
		if !d.let(ctx, nc) {
			return net.ErrClosed
		}
	}
}
