// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// serving is a client whose agent takes every call and serves it by serve.
func serving(t *testing.T, serve func(op string, nc net.Conn)) *Client {
	return NewClient(func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			r := wire.NewReader(far)
			var req wire.Request
			for range 2 { // hello and call
				_, p, err := r.Next()
				if err != nil {
					return
				}
				if err := wire.Decode(p, &req); err != nil && req.Op != "" {
					t.Error(err)
				}
			}
			serve(req.Op, far)
		}()
		return near, nil
	})
}

func answerAll(nc net.Conn) { _, _ = nc.Write(frames(wire.Reply, wire.Info{}, wire.Done, struct{}{})) }

// gone waits until the caller has closed its end.
func gone(nc net.Conn) { _, _ = nc.Read(make([]byte, 1)) }

func TestALongCallIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pings atomic.Int64
		c := serving(t, func(op string, nc net.Conn) {
			if op == wire.OpPing {
				pings.Add(1)
			} else {
				time.Sleep(time.Hour)
			}
			answerAll(nc)
		})
		c.Observe(nil, func(bool) { t.Error("it is taken for silent") })
		if err := c.Remove(t.Context(), "/large", sandbox.RemoveFileOptions{Recursive: true}); err != nil {
			t.Error(err)
		}
		if pings.Load() == 0 {
			t.Error("nobody asked for a sign of life")
		}
	})
}

func TestACallToASilentAgentEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var talks atomic.Bool
		c := serving(t, func(op string, nc net.Conn) {
			if talks.Load() {
				answerAll(nc)
				return
			}
			gone(nc)
		})
		var told []bool
		c.Observe(func() bool { return false }, func(silent bool) { told = append(told, silent) })
		began := time.Now()
		err := c.Remove(t.Context(), "/f", sandbox.RemoveFileOptions{})
		if !errors.Is(err, ErrSilent) || !fault.Is(err, fault.Unavailable) || time.Since(began) != SilenceBound {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if since := c.SilentSince(); !since.Equal(began) {
			t.Errorf("silent since %v, want %v", since, began)
		}
		talks.Store(true)
		if err := c.Remove(t.Context(), "/f", sandbox.RemoveFileOptions{}); err != nil || !c.SilentSince().IsZero() {
			t.Errorf("it answers again: %v, silent since %v", err, c.SilentSince())
		}
		if len(told) != 2 || !told[0] || told[1] {
			t.Errorf("told %v", told)
		}
	})
}

// The caller's own end is what it was.
func TestTheEndOfACallersPatienceIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serving(t, func(_ string, nc net.Conn) { gone(nc) })
		for _, after := range []time.Duration{time.Second, wordBound, wordBound + time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			if err := c.Remove(ctx, "/f", sandbox.RemoveFileOptions{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after %v: %v", after, err)
			}
			cancel()
		}
		if since := c.SilentSince(); !since.IsZero() {
			t.Errorf("silent since %v", since)
		}
	})
}

// One that is frozen cannot answer, and waits for its thaw.
func TestAFrozenAgentIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		thaw := make(chan struct{})
		c := serving(t, func(_ string, nc net.Conn) {
			<-thaw
			answerAll(nc)
		})
		var frozen atomic.Bool
		frozen.Store(true)
		c.Observe(frozen.Load, func(bool) { t.Error("it is taken for silent") })
		done := make(chan error, 1)
		go func() { done <- c.Remove(t.Context(), "/f", sandbox.RemoveFileOptions{}) }()
		time.Sleep(24 * time.Hour)
		frozen.Store(false)
		close(thaw)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A queue of connections that is full for a moment is that of a busy agent.
func TestAFullQueueOfConnectionsIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		full := time.Second
		talking := serving(t, func(_ string, nc net.Conn) { answerAll(nc) })
		c := NewClient(func(ctx context.Context) (net.Conn, error) {
			if time.Since(began) < full {
				return nil, &net.OpError{Op: "dial", Err: syscall.EAGAIN}
			}
			return talking.dial(ctx)
		})
		if _, err := c.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		full = 1000 * time.Hour
		if _, err := c.Ping(t.Context()); !errors.Is(err, ErrSilent) {
			t.Errorf("full for good: %v", err)
		}
	})
}
