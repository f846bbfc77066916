// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"time"

	"sandpit.dev/fault"
)

// interruptible is what Interrupt has to know of the cell that runs. Session.mu
// guards it.
type interruptible struct {
	id      int64
	started bool
	wanted  bool               // an interrupt, as soon as it has started
	stopped bool               // the kernel was sent StopSignal
	tries   int                // how often one was sent
	again   time.Time          // when to send it again
	wake    context.CancelFunc // ends the wait of who follows the cell
}

// An interrupt is sent again when the cell still runs after insistAfter, and once more each time
// that doubles. A bash that waits for a command believes that the command has dealt with it, if
// that ends of itself in the same moment; and what Node waits for may have started too late
// to get it.
const (
	insistAfter = 250 * time.Millisecond
	insistTries = 4
)

// Interrupt makes the cell that runs end, if it can be made to: SIGINT. Without one it is
// fault.State. Wait or Execute tell how it ended.
func (s *Session) Interrupt(ctx context.Context) error {
	s.signal.Lock()
	defer s.signal.Unlock()
	s.mu.Lock()
	r := s.running
	switch {
	case s.status == Dead:
		defer s.mu.Unlock()
		return s.death
	case r == nil:
		defer s.mu.Unlock()
		return fault.New(fault.State, "no cell is running")
	}
	r.wanted = true
	started := r.started
	s.mu.Unlock()
	if !started {
		return nil // who follows it does it then
	}
	return s.stop(ctx, r)
}

// Stop calls send, which sends the kernel StopSignal, and what the cell has started what ends that, while the cell that
// runs is sure to be the one that is meant. It is fault.State where none has started, and where the kernel does not
// know the signal.
func (s *Session) Stop(send func() error) error {
	s.signal.Lock()
	defer s.signal.Unlock()
	s.mu.Lock()
	r := s.running
	ok := s.state.Stops && r != nil && r.started
	if ok {
		r.stopped = true
	}
	s.mu.Unlock()
	if !ok {
		return fault.New(fault.State, "no cell is running that could be stopped")
	}
	return send()
}

// stop sends the interrupt.
func (s *Session) stop(ctx context.Context, r *interruptible) error {
	s.mu.Lock()
	r.tries++
	r.again = time.Now().Add(insistAfter << min(r.tries, 10))
	if r.wake != nil {
		r.wake()
	}
	s.mu.Unlock()
	if err := s.carrier.Interrupt(ctx); err != nil {
		return err
	}
	if said := s.language.interrupt(r.id); said != nil {
		return s.write(ctx, said)
	}
	return nil
}

// started tells that the cell runs, and sends the interrupt that has waited for it.
func (s *Session) started(ctx context.Context) error {
	s.mu.Lock()
	r := s.running
	wanted := r != nil && !r.started && r.wanted
	if r != nil {
		r.started = true
	}
	s.mu.Unlock()
	if wanted {
		return s.stop(ctx, r)
	}
	return nil
}

// patience is a context for the next wait: it ends when an interrupt is to be sent again, or
// when one was sent since.
func (s *Session) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.running
	if r == nil || s.language == Python || r.tries >= insistTries { // a second one would meet Python in its cleaning up
		return context.WithCancel(ctx)
	}
	if r.tries > 0 {
		return context.WithDeadline(ctx, r.again)
	}
	wait, cancel := context.WithCancel(ctx)
	r.wake = cancel
	return wait, cancel
}

// insist sends the interrupt again, if it is time.
func (s *Session) insist(ctx context.Context) error {
	s.mu.Lock()
	r := s.running
	due := r != nil && r.tries > 0 && !time.Now().Before(r.again)
	s.mu.Unlock()
	if !due {
		return nil
	}
	return s.stop(ctx, r)
}

// wasInterrupted reports whether the running cell was to be interrupted.
func (s *Session) wasInterrupted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running != nil && s.running.wanted
}
