// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/fault"
)

// The agent's process has a limit of memory, at which it ends with its sandbox. So what the
// calls of somebody who may only read can hold together is bounded well below that.
const (
	// maxStreams is how many files are read and processes followed at a time. Each holds 0.3 MB
	// while its caller does not read: a buffer here, and the kernel's.
	maxStreams = 512
	// maxLists is how many lists of files or processes are made at a time. Each holds up to 30 MB.
	maxLists = 2
	// listPatience bounds the sending of a list, in which the others wait.
	listPatience = time.Minute
)

// stream runs a call that sends as fast as its caller reads.
func (s *Server) stream(call func() error) error {
	defer s.streams.Add(-1)
	if s.streams.Add(1) > maxStreams {
		return fault.New(fault.Exhausted, "%d files are being read and processes followed in the sandbox, its bound", maxStreams).
			WithRemedy("close some downloads or followers and try again")
	}
	return call()
}

// list runs a call that makes a list, when it is its turn.
func (s *Server) list(ctx context.Context, c *call.Conn, call func() error) error {
	select {
	case s.lists <- struct{}{}:
	default:
		if err := s.awaitList(ctx, c); err != nil {
			return err
		}
	}
	defer func() { <-s.lists }()
	_ = c.SetWriteDeadline(time.Now().Add(listPatience))
	return call()
}

// awaitList waits for a turn, as long as the caller does.
func (s *Server) awaitList(ctx context.Context, c *call.Conn) error {
	ctx, done := c.Until(ctx)
	defer done()
	select {
	case s.lists <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
