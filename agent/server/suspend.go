// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync"
	"time"

	"sandpit.dev/fault"
)

// suspension holds up the server's commands while the sandbox is frozen: their time
// limits stand still, and none is started. The kernel freezes processes and no
// clocks; and a command that it froze on its way to its program would find, when it
// goes on, that it took too long.
//
// A suspension that no freeze follows is one whose server was killed: it ends by
// itself after suspensionTicks ticks. A frozen agent counts none, however long it is.
type suspension struct {
	mu       sync.Mutex
	turn     int64         // of the last call that was obeyed
	over     chan struct{} // closed when it is over; nil: nothing is suspended
	starting int           // commands that are being started
	idle     chan struct{} // closed when none is; nil: nobody waits for it
}

const (
	suspensionTick  = 250 * time.Millisecond
	suspensionTicks = 40
)

// enter waits until nothing is suspended, and counts a start until leave.
func (u *suspension) enter(ctx context.Context) error {
	for {
		u.mu.Lock()
		over := u.over
		if over == nil {
			u.starting++
		}
		u.mu.Unlock()
		if over == nil {
			return nil
		}
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (u *suspension) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.starting--; u.starting == 0 && u.idle != nil {
		close(u.idle)
		u.idle = nil
	}
}

// startedLocked returns what is closed when no command is being started; nil if none is. mu is held.
func (u *suspension) startedLocked() <-chan struct{} {
	if u.starting > 0 && u.idle == nil {
		u.idle = make(chan struct{})
	}
	return u.idle
}

// suspend begins a suspension, with what was uploaded on the disk. It returns when no command
// is being started, or with ctx's error; then the suspension holds all the same. An older turn than that of
// the last call has no effect: whoever sent it gave up on it.
func (s *Server) suspend(ctx context.Context, turn int64) error {
	s.files.SyncNow() // a frozen agent cannot
	u := &s.pause
	u.mu.Lock()
	if turn < u.turn {
		defer u.mu.Unlock()
		return outdated(turn, u.turn)
	}
	u.turn = turn
	if u.over == nil {
		u.over = make(chan struct{})
		over := u.over
		s.work.Go(func() { s.outlast(over) })
	}
	s.eachLimit((*timeLimit).suspend)
	idle := u.startedLocked()
	u.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
	case <-ctx.Done():
		return ctx.Err()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over == nil {
		return outdated(turn, u.turn)
	}
	s.eachLimit((*timeLimit).suspend) // those of what was being started
	return nil
}

// hold begins a suspension that lasts until release, with what was uploaded on the disk. It waits until no command is being started.
func (s *Server) hold(ctx context.Context) (release func(), err error) {
	s.files.SyncNow()
	u := &s.pause
	over := make(chan struct{})
	for {
		u.mu.Lock()
		other := u.over
		if other == nil {
			break
		}
		u.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	u.over = over
	s.eachLimit((*timeLimit).suspend)
	idle := u.startedLocked()
	u.mu.Unlock()
	release = func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.over == over {
			s.resumeLocked()
		}
	}
	if idle == nil {
		return release, nil
	}
	select {
	case <-idle:
	case <-ctx.Done():
		release()
		return nil, ctx.Err()
	}
	s.eachLimit((*timeLimit).suspend) // those of what was being started
	return release, nil
}

// proceed ends a suspension. Where there is none it only outdates older calls.
func (s *Server) proceed(turn int64) error {
	u := &s.pause
	u.mu.Lock()
	defer u.mu.Unlock()
	if turn < u.turn {
		return outdated(turn, u.turn)
	}
	u.turn = turn
	if u.over != nil {
		s.resumeLocked()
	}
	return nil
}

// resumeLocked ends a suspension, under its mu.
func (s *Server) resumeLocked() {
	s.eachLimit((*timeLimit).proceed)
	close(s.pause.over)
	s.pause.over = nil
}

// outlast ends the suspension of which over tells, once it has lasted too long.
func (s *Server) outlast(over chan struct{}) {
	tick := time.NewTicker(suspensionTick)
	defer tick.Stop()
	for range suspensionTicks {
		select {
		case <-tick.C:
		case <-over:
			return
		case <-s.ctx.Done():
			return
		}
	}
	u := &s.pause
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over == over {
		s.resumeLocked()
	}
}

func outdated(turn, newer int64) error {
	return fault.New(fault.State, "turn %d is over: a call with turn %d came before it", turn, newer)
}

func (s *Server) eachLimit(f func(*timeLimit)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.procs {
		if p != nil {
			f(&p.limit)
		}
	}
}

// timeLimit ends a process when its time is over. Its zero value has no limit.
type timeLimit struct {
	mu    sync.Mutex
	timer *time.Timer // nil: there is none, or no more
	ends  time.Time
	left  time.Duration // while it stands still; zero: it runs
}

// begin has over called after d, once.
func (l *timeLimit) begin(d time.Duration, over func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = time.Now().Add(d)
	l.timer = time.AfterFunc(d, over)
}

func (l *timeLimit) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

func (l *timeLimit) suspend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil && l.left == 0 && l.timer.Stop() {
		l.left = max(time.Until(l.ends), 1)
	}
}

func (l *timeLimit) proceed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil && l.left > 0 {
		l.ends = time.Now().Add(l.left)
		l.timer.Reset(l.left)
		l.left = 0
	}
}
