// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"sandpit.dev/runtime"
)

// laterTraffic is that of a container that is frozen, and sends nothing: it begins when the container is thawed.
type laterTraffic struct {
	begun  chan struct{} // closed when there is t, or will be none
	t      runtime.Traffic
	cancel context.CancelFunc
	work   sync.WaitGroup
}

func newLaterTraffic(thawed <-chan struct{}, begin func(context.Context) (runtime.Traffic, error)) *laterTraffic {
	ctx, cancel := context.WithCancel(context.Background())
	l := &laterTraffic{begun: make(chan struct{}), cancel: cancel}
	l.work.Go(func() {
		defer close(l.begun)
		select {
		case <-thawed:
		case <-ctx.Done():
			return
		}
		t, err := begin(ctx)
		if err != nil { // it ends, and who asked for it tries again
			return
		}
		l.t = t
	})
	return l
}

// traffic waits until it has begun.
func (l *laterTraffic) traffic() (runtime.Traffic, error) {
	<-l.begun
	if l.t == nil {
		return nil, net.ErrClosed
	}
	return l.t, nil
}

func (l *laterTraffic) Accept() (runtime.Conn, error) {
	t, err := l.traffic()
	if err != nil {
		return nil, err
	}
	return t.Accept()
}

func (l *laterTraffic) Wait() error {
	t, err := l.traffic()
	if err != nil {
		return err
	}
	return t.Wait()
}

func (l *laterTraffic) Read(b []byte) (n int, from, to netip.AddrPort, err error) {
	t, err := l.traffic()
	if err != nil {
		return 0, from, to, err
	}
	return t.Read(b)
}

func (l *laterTraffic) Lost() int64 {
	t, err := l.traffic()
	if err != nil {
		return 0
	}
	return t.Lost()
}

func (l *laterTraffic) Answer(b []byte, from netip.Addr, to netip.AddrPort) error {
	t, err := l.traffic()
	if err != nil {
		return err
	}
	return t.Answer(b, from, to)
}

func (l *laterTraffic) Answering(from, to netip.AddrPort) (net.Conn, error) {
	t, err := l.traffic()
	if err != nil {
		return nil, err
	}
	return t.Answering(from, to)
}

// Close ends it, begun or not.
func (l *laterTraffic) Close() error {
	l.cancel()
	l.work.Wait()
	t, err := l.traffic()
	if err != nil {
		return nil
	}
	return t.Close()
}
