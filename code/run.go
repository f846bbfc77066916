// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

// Bounds of code.
const (
	MaxCode     = kernel.MaxCode // bytes of one cell
	MaxContexts = 32             // of a sandbox, those that live for one cell included
	MaxQueued   = 64             // cells that wait for one context
)

// Request is one cell of code.
type Request struct {
	Code string

	// Where it runs: in the context ContextID; else in the sandbox's own context of the
	// language, which the first such cell makes; else, with Stateless, in a kernel that
	// lives for this cell.
	Language  string // empty: the context's, or python
	ContextID string
	Stateless bool

	Cwd  string            // with Stateless: as in ContextRequest
	User string            // with Stateless: as in ContextRequest
	Env  map[string]string // for this cell
	Argv []string          // for this cell, as in kernel.Cell

	Timeout   time.Duration // the cell is interrupted then, and its kernel killed if that does not end it; zero: Defaults.CommandTimeout
	MaxStdout int64         // bytes to collect; zero: DefaultOutput
	MaxStderr int64

	// InterruptOnDisconnect interrupts the cell when ctx ends, or the sink fails, before
	// RunCode has returned. Else it goes on, as it does when the cause of ctx's end is
	// fault.Unavailable: then it is the server that goes.
	InterruptOnDisconnect bool
	TellArtifacts         bool         // as in engine.ExecRequest
	Room                  *budget.Room // as in engine.ExecRequest
}

// Start is what is known when a cell begins.
type Start struct {
	ContextID string // empty with Stateless
	CellID    string // of its event
	Language  string
	// Restarted is why the variables of the cells before are gone: the context's kernel
	// had ended, and a new one was started for this cell. Empty: they are not.
	Restarted string
}

// Sink takes what a cell shows while it runs: in order, one call at a time and none after
// RunCode has returned. An error ends the taking and becomes RunCode's. A sink that blocks has to
// return when ctx ends. Each may be nil.
type Sink struct {
	Started func(Start) error
	Stdout  func([]byte) error // not to be kept
	Stderr  func([]byte) error
	Result  func(kernel.Result) error
}

// Status says how a cell ended.
type Status string

// The statuses.
const (
	OK          Status = "ok" // in bash: with any exit code
	Error       Status = "error"
	Interrupted Status = "interrupted"
	TimedOut    Status = "timed_out"
	Ended       Status = "ended" // and its kernel with it
)

// Result is what became of a cell.
type Result struct {
	Start
	Status Status
	Count  int  // which of its kernel's cells it is, from 1; zero: it did not begin
	Dead   bool // its kernel has ended: the context's next cell starts another

	// Without a sink: what was kept.
	Stdout, Stderr []byte
	Results        []kernel.Result
	Dropped        int // results above the bounds of package kernel

	StdoutBytes, StderrBytes         int64
	StdoutTruncated, StderrTruncated bool

	Error       *kernel.Error // an exception
	ExitCode    int           // bash's; of others 0, 1 for an error, 130 for an interrupt; how a kernel ended that did
	Signal      string        // that ended the kernel
	Cause       sandbox.Cause
	CauseDetail string
	Duration    time.Duration

	Changes         []sandbox.FileChange // in the workspace, sorted by path
	ChangesTotal    int
	ChangesComplete bool
	SnapshotID      sandbox.ID // the checkpoint that was taken after it, if one was
	NoArtifacts     bool       // as in engine.ExecResult
}

// RunCode runs a cell, after those that came to its context before, and waits until it ends. A
// cell that fails, is interrupted or takes its kernel with it is a result, not an error. An
// error with a CellID means that the cell goes on, or will, and is not followed for the caller:
// ctx ended, the sink failed, or the server stops. Its event is completed all the same.
// An image without the language is fault.Unsupported, more contexts or waiting cells than
// the bounds allow fault.Exhausted.
func (s *Service) RunCode(ctx context.Context, c access.Caller, ref string, r Request, sink *Sink) (Result, error) {
	c = c.Inside()
	if err := c.Require(access.SandboxesWrite); err != nil {
		return Result{}, err
	}
	want, err := s.checkRequest(&r)
	if err != nil {
		return Result{}, err
	}
	u, err := s.engine.Use(ctx, c, access.SandboxesWrite, ref, useCode)
	if err != nil {
		return Result{}, err
	}
	began := time.Now()
	cc, err := s.queue(ctx, u, r, want)
	if err != nil {
		u.End()
		return Result{}, err
	}
	x := newCell(u, cc, r, sink)
	s.engine.Go(func(own context.Context) { x.do(keyed.Carry(own, ctx)) })
	res, err := x.wait(ctx)
	s.metrics.seconds.Observe(time.Since(began).Seconds())
	return res, err
}

// queue finds the context of a cell and takes its lock.
func (s *Service) queue(ctx context.Context, u *engine.Use, r Request, want sandbox.Context) (*codeContext, error) {
	for {
		cc, err := s.contextOf(ctx, u, r, want)
		if err != nil {
			return nil, err
		}
		ok, err := cc.acquire(ctx)
		if err != nil {
			return nil, err
		}
		if ok {
			return cc, nil
		}
		if r.ContextID != "" {
			return nil, noContext(r.ContextID)
		}
	}
}

// checkRequest checks a request, and returns the context that it may have to make.
func (s *Service) checkRequest(r *Request) (sandbox.Context, error) {
	var k check.Fields
	switch {
	case len(r.Code) > MaxCode:
		return sandbox.Context{}, fault.New(fault.TooLarge, "code: has %d bytes, more than %d", len(r.Code), MaxCode).
			WithRemedy("put it into a file of the sandbox, and import or source that")
	case !utf8.ValidString(r.Code):
		k.Bad("code", "is not valid UTF-8")
	case strings.IndexByte(r.Code, 0) >= 0:
		k.Bad("code", "holds a NUL byte")
	}
	if err := k.Take(kernel.CheckArgv(r.Argv)); err != nil {
		return sandbox.Context{}, err
	}
	k.Bytes("max_stdout", r.MaxStdout, engine.MaxCollected)
	k.Bytes("max_stderr", r.MaxStderr, engine.MaxCollected)
	if r.ContextID != "" && r.Stateless {
		k.Bad("stateless", "and context_id are both given; a context has a state")
	}
	if r.ContextID != "" && !sandbox.ValidID(r.ContextID) {
		return sandbox.Context{}, noContext(r.ContextID)
	}
	if !r.Stateless {
		if r.Cwd != "" {
			k.Bad("cwd", "is the context's; make one with it, or change it in the code")
		}
		if r.User != "" {
			k.Bad("as_user", "is the context's; make one with it")
		}
	}
	if r.Language == "" && r.ContextID == "" {
		r.Language = string(kernel.Python)
	}
	want, timeout, err := s.checkContext(&k, ContextRequest{Language: r.Language, Cwd: r.Cwd, User: r.User, Env: r.Env}, r.Timeout)
	if err != nil {
		return want, err
	}
	want.Env = nil // it is the cell's
	want.Default = !r.Stateless
	r.Language, r.Timeout = want.Language, timeout
	return want, k.Err()
}

// checkContext checks what a context is to be, and how long a cell may take. An empty language stays.
func (s *Service) checkContext(k *check.Fields, r ContextRequest, limit time.Duration) (want sandbox.Context, timeout time.Duration, err error) {
	cmd, err := s.engine.CheckCommand(engine.ExecRequest{Argv: []string{"true"}, Cwd: r.Cwd, User: r.User, Env: r.Env, Timeout: limit})
	if err := k.Take(err); err != nil {
		return want, 0, err
	}
	want = sandbox.Context{Cwd: cmd.Cwd, User: cmd.User, Env: r.Env}
	if r.Language != "" {
		l, err := kernel.ParseLanguage(r.Language)
		if err := k.Take(err); err != nil {
			return want, 0, err
		}
		want.Language = string(l)
	}
	return want, cmd.Timeout, nil
}

// CodeAgain returns what is on record of a cell that an earlier RunCode has begun, when it
// has ended: its outcome without what it wrote and showed. began is false where the cell is known
// never to have begun.
func (s *Service) CodeAgain(ctx context.Context, c access.Caller, of sandbox.ID, cellID string) (res Result, began bool, err error) {
	ev, began, err := s.engine.Outcome(ctx, c, of, cellID)
	if err != nil || !began {
		return Result{}, began, err
	}
	res = Result{
		Start:  Start{ContextID: ev.ContextID, CellID: ev.ProcessID, Language: ev.Language},
		Status: OK, ExitCode: ev.ExitCode, Signal: ev.Signal, Cause: ev.Cause, CauseDetail: ev.Detail, Duration: ev.Duration,
		StdoutBytes: ev.StdoutBytes, StderrBytes: ev.StderrBytes, StdoutTruncated: ev.StdoutBytes > 0, StderrTruncated: ev.StderrBytes > 0,
		Changes: ev.Changes, ChangesTotal: ev.ChangesTotal, ChangesComplete: len(ev.Changes) > 0 && len(ev.Changes) == ev.ChangesTotal,
	}
	switch {
	case ev.OK:
	case ev.Cause == sandbox.CauseTimeout:
		res.Status = TimedOut
	case ev.Cause != sandbox.CauseNone:
		res.Status, res.Dead = Ended, true
	case ev.ExitCode == exitInterrupted:
		res.Status = Interrupted
	default:
		res.Status = Error
	}
	return res, true, nil
}

func noContext(id string) *fault.Error {
	return fault.New(fault.NotFound, "there is no context %q in this sandbox", sandbox.Clip(id, 40)).
		WithRemedy("list its contexts, or make one")
}
