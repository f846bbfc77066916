// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/tree"
	"sandpit.dev/fault"
)

const (
	// stillPatience is how long processes that do not stand still are stopped again and again: one that waits for a child
	// which is stopped itself, as vfork(2) has it, never stands still, and one that waits for a disk does so late.
	stillPatience = 10 * time.Second
	firstTry      = 50 * time.Millisecond // how long they get at first, and then more
	stillLook     = time.Millisecond
)

// still has every process but this one stand still until goOn, and none be started: by signals, since an agent in somebody
// else's container has no freezer. Those that were stopped before stay so then.
func (s *Server) still(ctx context.Context) (goOn func(), err error) {
	if !s.o.Init {
		return nil, fault.New(fault.Unsupported, "the agent is not process 1, and cannot have all others stand still")
	}
	release, err := s.hold(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for try := firstTry; ; try *= 2 {
		before := tree.StoppedNow()
		err := unix.Kill(-1, unix.SIGSTOP) // every process of this namespace but 1, at one instant
		if err == unix.ESRCH {
			err = nil // there is none
		}
		if err == nil && waitStill(ctx, try) {
			return func() { proceedAll(before); release() }, nil
		}
		proceedAll(before)
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && time.Since(began) > stillPatience {
			err = fault.New(fault.Unavailable, "the sandbox's processes do not stand still: some have waited for a disk all the time").
				WithRemedy("try again when they write less, or stop the sandbox first")
		}
		if err != nil {
			release()
			return nil, err
		}
		select { // they get on meanwhile
		case <-ctx.Done():
		case <-time.After(try / 10):
		}
	}
}

// waitStill waits until all processes are stopped, or d has passed.
func waitStill(ctx context.Context, d time.Duration) bool {
	for end := time.Now().Add(d); ; {
		if tree.AllStopped() {
			return true
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return false
		}
		select {
		case <-ctx.Done():
		case <-time.After(stillLook):
		}
	}
}

// proceedAll has all processes go on but those that were stopped before: children first, so that no parent sees one stopped.
func proceedAll(before map[int]bool) {
	for _, pid := range tree.DeepestFirst() {
		if !before[pid] {
			_ = unix.Kill(pid, unix.SIGCONT) // it may have ended
		}
	}
}

// mayStop waits until nothing stands still where a signal would have a process stop or go on, and has nothing begin to until leave.
func (s *Server) mayStop(ctx context.Context, sig unix.Signal) (leave func(), err error) {
	switch sig {
	case unix.SIGCONT, unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		if err := s.pause.enter(ctx); err != nil {
			return nil, err
		}
		return s.pause.leave, nil
	}
	return func() {}, nil
}
