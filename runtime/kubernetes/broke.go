// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/agent/mux"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// lookPause is before a pod is looked at again that is being deleted.
const lookPause = time.Second

// noticing is dialer for a pod that is up. Broke is told when a connection breaks.
func (i *Instance) noticing(address string, key *handshake.Key, broke chan<- struct{}) *mux.Dialer {
	reach := i.reachAt(address)
	return mux.NewDialer((&handshake.Dialer{Key: key, What: handshake.ManyCalls, Dial: func(ctx context.Context) (net.Conn, error) {
		nc, err := reach(ctx)
		if err != nil {
			return nil, err
		}
		return &noticed{nc, broke}, nil
	}}).DialContext)
}

// noticed is a connection that sends to broke when a Read fails.
type noticed struct {
	net.Conn
	broke chan<- struct{}
}

func (c *noticed) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		select {
		case c.broke <- struct{}{}:
		default:
		}
	}
	return n, err
}

// SyscallConn is that of the connection, where it has one.
func (c *noticed) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// notice has a pod looked at whenever a connection to its agent broke, until it is down. Nothing comes from a watch whose API server hangs, and it would
// not tell that the pod is gone.
func (i *Instance) notice(pod types.UID, down <-chan struct{}, broke <-chan struct{}) {
	for {
		select {
		case <-broke:
			if !i.isStopping() {
				i.lookAt(pod)
			}
		case <-down:
			return
		case <-i.d.running.Done():
			return
		}
	}
}

func (i *Instance) isStopping() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopping
}

// lookAt asks for a pod, until the API server says what became of it.
func (i *Instance) lookAt(pod types.UID) {
	for pause := again; ; pause = min(2*pause, againMost) {
		ask, cancel := context.WithTimeout(i.d.running, againMost)
		p, err := i.d.podOf(ask, i.id)
		cancel()
		switch {
		case fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) || err == nil && p.UID != pod:
			i.endsAs(pod, runtime.Exit{Cause: sandbox.CauseHost, Detail: podDeleted})
			return
		case err == nil:
			if exit, over := exitOf(p); over {
				i.endsAs(pod, exit)
				return
			}
			if p.DeletionTimestamp == nil || i.d.nodes.isSilent(p.Spec.NodeName) {
				return
			}
			pause = lookPause
		}
		if !i.isUp(pod) {
			return
		}
		select {
		case <-i.d.running.Done():
			return
		case <-time.After(pause):
		}
	}
}

// isUp reports whether a pod is the one that is up.
func (i *Instance) isUp(pod types.UID) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.up && i.pod == pod
}

// endsAs makes it down, if a pod is the one that is up.
func (i *Instance) endsAs(pod types.UID, exit runtime.Exit) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.pod == pod {
		i.endsLocked(exit)
	}
}
