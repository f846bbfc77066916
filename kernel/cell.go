// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"time"

	"sandpit.dev/fault"
)

// Handler gets what a cell says as it says it. Each may be nil. They are called from
// Execute or Wait, one at a time, and what they are given is theirs to read until they
// return, but for results, which are theirs to keep.
type Handler struct {
	Started func(count int)
	Stdout  func([]byte)
	Stderr  func([]byte)
	Result  func(Result)
}

func (h *Handler) output(stream int, b []byte) {
	f := h.Stdout
	if stream == 1 {
		f = h.Stderr
	}
	if f != nil {
		f(b)
	}
}

// End says how a cell ended.
type End string

// The ends.
const (
	OK          End = "ok"          // in bash: with any exit code
	Failed      End = "error"       // by Outcome.Error
	Interrupted End = "interrupted" // by Interrupt, or its timeout
	Ended       End = "ended"       // with the kernel itself, see Outcome.Exit
)

// Outcome is how a cell went.
type Outcome struct {
	Count    int // which of the context's cells it is, from 1
	End      End
	Error    *Error // with Failed; and with Interrupted, where the language has one
	TimedOut bool

	Results []Result // as the handler got them
	Dropped int      // results above the bounds

	ExitCode int   // of bash
	Exit     *Exit // with Ended
	Duration time.Duration
}

// run is the cell that runs.
type run struct {
	id       int64
	outcome  Outcome
	bytes    int
	begun    bool
	outDone  bool
	errDone  bool
	startNow bool  // the start message came and was not acted upon yet
	resumed  bool  // it is not known whether the kernel has heard of it
	probe    int64 // the ping that is answered after it
}

func (r *run) done() bool { return r.outDone && r.errDone }

// message acts on what the kernel says of the cell.
func (r *run) message(s *Session, stream int, m *message, h *Handler) error {
	if stream == 1 {
		r.errDone = true // output of stderr that comes now is not the cell's
		return nil
	}
	if r.outDone {
		return nil
	}
	o := &r.outcome
	switch m.T {
	case "start":
		if r.begun {
			return nil
		}
		r.begun, r.startNow = true, true
		o.Count = int(max(0, min(m.Count, 1<<31)))
		if h.Started != nil {
			h.Started(o.Count)
		}
	case "result":
		if len(o.Results) == MaxResults {
			o.Dropped++
			return nil
		}
		res, used := m.result(MaxResultBytes - r.bytes)
		r.bytes += used
		res.At = s.at
		o.Results = append(o.Results, res)
		if h.Result != nil {
			h.Result(res)
		}
	case "error":
		o.Error = m.failure()
	case "end":
		r.outDone = true
		o.Dropped += max(0, min(m.Dropped, 1<<31))
		r.end(s, m)
	}
	return nil
}

func (r *run) end(s *Session, m *message) {
	o := &r.outcome
	o.End = OK
	if s.language == Bash {
		o.ExitCode = max(0, min(m.Exit, 255))
		if o.ExitCode == 130 && s.wasInterrupted() {
			o.End = Interrupted
		}
		return
	}
	switch m.Status {
	case "error":
		o.End = Failed
		if o.Error == nil {
			o.Error = &Error{Name: "Error", Value: "the kernel said nothing of it"}
		}
	case "interrupted":
		o.End = Interrupted
	}
}

// Execute runs a cell and returns when it is over; the error is nil then, however it
// ended. It waits while another caller's Execute goes on. Errors:
//
//   - fault.Invalid, fault.TooLarge: the cell, which was not run.
//   - that of the cell's Deliver, which told the kernel nothing: the cell was not run.
//   - fault.State: a cell runs that no caller follows (Wait for it, or Interrupt it), or the
//     context is dead; the cell was not run.
//   - fault.Timeout: the cell was interrupted at its timeout and still runs.
//   - that of ctx: the cell still runs; Wait goes on with it. Or it was not run, if
//     the session is idle.
//   - fault.Unavailable, fault.Exhausted: the context is dead, its kernel perhaps not; end it.
//   - the transport's: the cell may run. Resume goes on with another transport.
func (s *Session) Execute(ctx context.Context, c Cell, h Handler) (Outcome, error) {
	if err := c.check(s.language); err != nil {
		return Outcome{}, err
	}
	if err := s.take(ctx); err != nil {
		return Outcome{}, err
	}
	defer s.give()
	if err := s.alive(); err != nil {
		return Outcome{}, err
	}
	if s.run != nil {
		return Outcome{}, fault.New(fault.State, "the context is running another cell").
			WithRemedy("wait for it, interrupt it, or start another context")
	}
	if s.uncertain {
		if err := s.sync(ctx); err != nil {
			return Outcome{}, err
		}
	}
	began := time.Now()
	s.begin(s.lastID + 1)
	for i := range s.stray {
		if len(s.stray[i]) > 0 {
			h.output(i, s.stray[i])
			s.stray[i] = nil
		}
	}
	if told, err := s.deliver(ctx, c); err != nil && told {
		return Outcome{}, s.unsent(ctx, err, h)
	} else if err != nil {
		s.finish()
		return Outcome{}, err
	}
	return s.follow(ctx, c, h, began)
}

// deliver tells the kernel of a cell, and reports whether it may have heard of it.
func (s *Session) deliver(ctx context.Context, c Cell) (told bool, err error) {
	id := s.run.id
	if c.Deliver == nil {
		return true, s.write(ctx, s.language.run(id, c))
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	return c.Deliver(ctx, func(streams *Streams) []byte { return bashRun(id, c, streams) })
}

// lastWords is how long a kernel's end may take to be told when it has stopped to read.
const lastWords = 2 * time.Second

// unsent is the error for a cell of which only a part may have been sent, after
// which the kernel can be told no more. If it has ended, that says more.
func (s *Session) unsent(ctx context.Context, err error, h Handler) error {
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	_ = s.advance(ctx, &h)
	return s.die(fault.Wrap(fault.Unavailable, err, "the context's kernel did not take the cell").
		WithRemedy("start the context anew"), nil)
}

// Wait follows the cell that runs, as after an Execute that could not, or Resume;
// after Resume it begins anew with the cell's first output. Of c it uses Timeout, from
// now, and Grace. Errors are as for Execute; fault.State also when none runs, and when
// the cell that the state spoke of never reached the kernel.
func (s *Session) Wait(ctx context.Context, c Cell, h Handler) (Outcome, error) {
	if err := s.take(ctx); err != nil {
		return Outcome{}, err
	}
	defer s.give()
	if err := s.alive(); err != nil {
		return Outcome{}, err
	}
	if s.run == nil {
		return Outcome{}, fault.New(fault.State, "no cell is running")
	}
	if s.run.resumed {
		if err := s.ping(ctx); err != nil {
			return Outcome{}, err
		}
		s.run.resumed, s.run.probe = false, s.pings
	}
	return s.follow(ctx, c, h, time.Now())
}

// follow reads until the cell is over.
func (s *Session) follow(ctx context.Context, c Cell, h Handler, began time.Time) (Outcome, error) {
	r := s.run
	err := s.within(ctx, c, c.Timeout, time.Until(began.Add(c.Timeout)), &h)
	if errors.Is(err, errOver) {
		r.outcome.TimedOut = true
		grace := c.Grace
		if grace == 0 {
			grace = DefaultGrace
		}
		signal, cancel := context.WithTimeout(ctx, grace)
		_ = s.Interrupt(signal) // whether it did anything is seen next
		cancel()
		err = s.within(ctx, c, grace, grace, &h)
		if errors.Is(err, errOver) {
			return r.outcome, fault.New(fault.Timeout, "the cell runs on after its timeout of %v: it did not heed the interrupt", c.Timeout).
				WithRemedy("end the context and start it anew")
		}
	}
	exit := s.ended()
	switch {
	case err == nil:
	case exit != nil && r.begun:
		r.outcome.End, r.outcome.Exit = Ended, exit
	default:
		return Outcome{}, err
	}
	r.outcome.Duration = time.Since(began)
	s.finish()
	return r.outcome, nil
}

// errOver is that a bound of time has passed.
var errOver = errors.New("the time is over")

// within reads until the cell is over, or the time has passed if there is a bound.
func (s *Session) within(ctx context.Context, c Cell, bound, left time.Duration, h *Handler) error {
	if bound <= 0 {
		return s.advance(ctx, h)
	}
	for {
		slept := c.slept()
		until, cancel := context.WithTimeout(ctx, left)
		err := s.advance(until, h)
		over := err != nil && s.alive() == nil && ctx.Err() == nil && until.Err() != nil
		cancel()
		if !over {
			return err
		}
		if left = c.slept() - slept; left <= 0 {
			return errOver
		}
		left = max(left, dozing)
	}
}

// dozing is how often a bound that stands still is looked at, at the most.
const dozing = 100 * time.Millisecond

// slept returns what Slept does, zero without one.
func (c Cell) slept() time.Duration {
	if c.Slept == nil {
		return 0
	}
	return c.Slept()
}

// advance reads until the cell is over.
func (s *Session) advance(ctx context.Context, h *Handler) error {
	r := s.run
	for !r.done() {
		wait, cancel := s.patience(ctx)
		err := s.pump(wait, h)
		woken := wait.Err() != nil
		cancel()
		if err != nil && woken && ctx.Err() == nil && s.alive() == nil {
			err = s.insist(ctx)
		}
		if err != nil {
			return err
		}
		if r.startNow {
			r.startNow = false
			if err := s.started(ctx); err != nil {
				return err
			}
		}
		if !r.begun && r.probe > 0 && s.ponged >= r.probe {
			s.finish()
			return fault.New(fault.State, "the cell was never sent to its context").WithRemedy("run it again")
		}
	}
	return nil
}
