// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mux

import (
	"io"
	"log"
	"net"
	"time"

	"github.com/hashicorp/yamux"
)

const (
	// maxUnanswered is how many streams may be opened that the agent has not taken yet.
	maxUnanswered = 256
	// lingering is how long a stream that its reader closed waits for the other end to do so, too.
	lingering = 2 * time.Second
	// stuck bounds the time in which one piece of a stream is sent; after it the stream's
	// writer has an error.
	stuck = 10 * time.Second
)

func config(closes time.Duration) *yamux.Config {
	return &yamux.Config{
		AcceptBacklog: maxUnanswered, ConnectionWriteTimeout: stuck, MaxStreamWindowSize: maxOneFrame,
		KeepAliveInterval:  time.Hour, // which must be set, and is not used
		StreamCloseTimeout: closes, Logger: log.New(io.Discard, "", 0),
	}
}

// Agent is an agent's side of a stream: a listener, of whose connections each is one call.
type Agent struct {
	s    *yamux.Session
	uses *yielding // of its streams
}

// NewAgent begins it. nc is its own from now on.
func NewAgent(nc net.Conn) (*Agent, error) {
	// What the agent has sent stays until the server has read it, however long that takes.
	s, err := yamux.Server(&frames{Conn: nc}, config(0))
	if err != nil {
		return nil, err
	}
	return &Agent{s: s, uses: newYielding()}, nil
}

// Accept waits for the next call. Its error is for ever.
func (a *Agent) Accept() (net.Conn, error) {
	st, err := a.s.AcceptStream()
	if err != nil {
		return nil, plainly("accept", err)
	}
	return newConn(st, a.uses), nil
}

// Close ends all calls and the stream.
func (a *Agent) Close() error { return a.s.Close() }

// Addr is that of the stream.
func (a *Agent) Addr() net.Addr { return a.s.Addr() }
