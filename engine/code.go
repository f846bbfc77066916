// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

// Bounds of code.
const (
	MaxCode     = kernel.MaxCode // bytes of one cell
	MaxContexts = 8              // of a sandbox, those that live for one cell included
	MaxQueued   = 64             // cells that wait for one context
)

// CodeRequest is one cell of code.
type CodeRequest struct {
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

	Timeout   time.Duration // the cell is interrupted then, and its kernel killed if that does not end it; zero: Defaults.CommandTimeout
	MaxStdout int64         // bytes to collect; zero: DefaultOutput
	MaxStderr int64

	// InterruptOnDisconnect interrupts the cell when ctx ends, or the sink fails, before
	// RunCode has returned. Else it goes on, as it does when the cause of ctx's end is
	// fault.Unavailable: then it is the server that goes.
	InterruptOnDisconnect bool
	TellArtifacts         bool         // as in ExecRequest
	Room                  *budget.Room // as in ExecRequest
}

// CodeStart is what is known when a cell begins.
type CodeStart struct {
	ContextID string // empty with Stateless
	CellID    string // of its event
	Language  string
	// Restarted is why the variables of the cells before are gone: the context's kernel
	// had ended, and a new one was started for this cell. Empty: they are not.
	Restarted string
}

// CodeSink takes what a cell gives while it runs: in order, one call at a time and none after
// RunCode has returned. An error ends the taking and becomes RunCode's. A sink that blocks has to
// return when ctx ends. Each may be nil.
type CodeSink struct {
	Started func(CodeStart) error
	Stdout  func([]byte) error // not to be kept
	Stderr  func([]byte) error
	Result  func(kernel.Result) error
}

// CodeStatus says how a cell ended.
type CodeStatus string

// The statuses.
const (
	CodeOK          CodeStatus = "ok" // in bash: with any exit code
	CodeError       CodeStatus = "error"
	CodeInterrupted CodeStatus = "interrupted"
	CodeTimedOut    CodeStatus = "timed_out"
	CodeEnded       CodeStatus = "ended" // and its kernel with it
)

// CodeResult is what became of a cell.
type CodeResult struct {
	CodeStart
	Status CodeStatus
	Count  int  // which of its kernel's cells it is, from 1; zero: it did not begin
	Dead   bool // its kernel is no more: the context's next cell starts another

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
	NoArtifacts     bool       // as in ExecResult
}

// RunCode runs a cell, after those that came to its context before, and waits until it ends. A
// cell that fails, is interrupted or takes its kernel with it is a result, not an error. An
// error with a CellID means that the cell goes on, or will, and nobody follows it for the caller:
// ctx ended, the sink failed, or the server stops. Its event is completed all the same.
// An image without the language is fault.Unsupported, more contexts or waiting cells than
// the bounds allow fault.Exhausted.
func (e *Engine) RunCode(ctx context.Context, c access.Caller, ref string, r CodeRequest, sink *CodeSink) (CodeResult, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return CodeResult{}, err
	}
	want, err := e.codeRequest(&r)
	if err != nil {
		return CodeResult{}, err
	}
	u, err := e.use(ctx, c, access.SandboxesWrite, ref, actCode)
	if err != nil {
		return CodeResult{}, err
	}
	began := time.Now()
	cc, err := e.queue(ctx, u, r, want)
	if err != nil {
		u.end()
		return CodeResult{}, err
	}
	x := newCell(u, cc, r, sink)
	e.group.spawn(func(own context.Context) { x.do(keyed.Carry(own, ctx)) })
	res, err := x.wait(ctx)
	e.metrics.codeSeconds.Observe(time.Since(began).Seconds())
	return res, err
}

// queue finds the context of a cell and takes its turn.
func (e *Engine) queue(ctx context.Context, u *use, r CodeRequest, want sandbox.Context) (*codeContext, error) {
	for {
		cc, err := e.contextOf(ctx, u.b, r, want)
		if err != nil {
			return nil, err
		}
		ok, err := cc.take(ctx, e.group)
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

// codeRequest checks a request, and gives the context that it may have to make.
func (e *Engine) codeRequest(r *CodeRequest) (sandbox.Context, error) {
	var k check
	switch {
	case len(r.Code) > MaxCode:
		return sandbox.Context{}, fault.New(fault.TooLarge, "code: has %d bytes, more than %d", len(r.Code), MaxCode).
			WithRemedy("put it into a file of the sandbox, and import or source that")
	case !utf8.ValidString(r.Code):
		k.bad("code", "is not valid UTF-8")
	case strings.IndexByte(r.Code, 0) >= 0:
		k.bad("code", "holds a NUL byte")
	}
	k.timeout("timeout_seconds", r.Timeout, e.defaults.MaxCommandTimeout)
	k.bytes("max_stdout", r.MaxStdout, MaxCollected)
	k.bytes("max_stderr", r.MaxStderr, MaxCollected)
	if r.ContextID != "" && r.Stateless {
		k.bad("stateless", "and context_id are both given; a context has a state")
	}
	if r.ContextID != "" && !sandbox.ValidID(r.ContextID) {
		return sandbox.Context{}, noContext(r.ContextID)
	}
	if !r.Stateless {
		if r.Cwd != "" {
			k.bad("cwd", "is the context's; make one with it, or change it in the code")
		}
		if r.User != "" {
			k.bad("as_user", "is the context's; make one with it")
		}
	}
	if r.Language == "" && r.ContextID == "" {
		r.Language = string(kernel.Python)
	}
	want, err := e.wantContext(&k, ContextRequest{Language: r.Language, Cwd: r.Cwd, User: r.User, Env: r.Env})
	if err != nil {
		return want, err
	}
	want.Env = nil // it is the cell's
	r.Language = want.Language
	if r.Timeout == 0 {
		r.Timeout = e.defaults.CommandTimeout
	}
	want.Default = !r.Stateless
	return want, k.err()
}

// wantContext checks what a context is to be. An empty language stays.
func (e *Engine) wantContext(k *check, r ContextRequest) (sandbox.Context, error) {
	want := sandbox.Context{Cwd: k.cwd(r.Cwd, r.User), Env: r.Env}
	k.env(r.Env)
	if r.Language != "" {
		l, err := kernel.ParseLanguage(r.Language)
		k.add(err)
		want.Language = string(l)
	}
	var err error
	want.User, err = e.user(k, r.User)
	return want, err
}

func noContext(id string) *fault.Error {
	return fault.New(fault.NotFound, "there is no context %q in this sandbox", sandbox.Clip(id, 40)).
		WithRemedy("list its contexts, or make one")
}
