// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Client calls the agent of one sandbox. It keeps no connections: each call dials, and its
// connection ends with it. It is safe for concurrent use. In all methods ctx bounds the call, and
// if it ends, the error is that of ctx. A call whose agent sends nothing for SilenceBound ends as
// well, see [ErrSilent].
type Client struct {
	dial    func(ctx context.Context) (net.Conn, error)
	full    func() fault.Disk // nil: the agent knows as much as anybody
	root    func() bool       // nil: no
	silence silence
}

// NewClient returns a client that reaches the agent by dial.
func NewClient(dial func(ctx context.Context) (net.Conn, error)) *Client {
	return &Client{dial: dial, silence: newSilence()}
}

// WithFullDisk returns a client that calls full to find which disk is full when the agent reports
// that one is: inside, the limit of one sandbox and that of all together look alike.
func (c *Client) WithFullDisk(full func() fault.Disk) *Client {
	return &Client{dial: c.dial, full: full, root: c.root, silence: newSilence()}
}

// WithRoot returns a client that calls root to find whether a user of the sandbox's whom the sandbox made
// its root by another name may act. The name "root" itself says who it is, and is for the caller to refuse.
func (c *Client) WithRoot(root func() bool) *Client {
	return &Client{dial: c.dial, full: c.full, root: root, silence: newSilence()}
}

// Info is what an agent reports about itself.
type Info struct {
	Version   string
	PID       int // in the sandbox; 1 where it is the first process
	Processes int // that run, or have left something that does
	// Lacks is what the agent cannot do where it runs, with the reason: see the Lack constants of
	// package wire.
	Lacks map[string]string
}

// maxLacks bounds how many of those are accepted from an agent.
const maxLacks = 32

// Ping asks the agent for a sign of life.
func (c *Client) Ping(ctx context.Context) (Info, error) {
	var info wire.Info
	err := c.ask(ctx, &wire.Request{Op: wire.OpPing}, &info)
	out := Info{Version: clean(info.Version, 100), PID: info.PID, Processes: info.Processes}
	for what, why := range info.Lacks {
		if out.Lacks == nil {
			out.Lacks = make(map[string]string)
		}
		if len(out.Lacks) < maxLacks {
			out.Lacks[clean(what, 40)] = clean(why, 300)
		}
	}
	return out, err
}

// Process returns the record of one process; fault.NotFound for one that never existed, or whose
// log is not kept any more.
func (c *Client) Process(ctx context.Context, id string) (sandbox.Process, error) {
	var rec wire.Record
	if err := c.ask(ctx, &wire.Request{Op: wire.OpProcess, ID: id}, &rec); err != nil {
		return sandbox.Process{}, err
	}
	return record(rec, id)
}

// maxProcesses bounds what a listing accepts from an agent.
const maxProcesses = 10_000

// Processes lists the running processes and the finished ones on record, oldest first.
func (c *Client) Processes(ctx context.Context) ([]sandbox.Process, error) {
	return c.processes(ctx, false)
}

// Running lists the running processes, oldest first. Its cost does not depend on the finished
// ones.
func (c *Client) Running(ctx context.Context) ([]sandbox.Process, error) {
	return c.processes(ctx, true)
}

func (c *Client) processes(ctx context.Context, running bool) ([]sandbox.Process, error) {
	s, err := c.call(ctx, &wire.Request{Op: wire.OpProcesses, Running: running}, nil)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var all []sandbox.Process
	for taken := 0; ; taken++ {
		t, p, err := s.next()
		switch {
		case err != nil:
			return nil, err
		case t == wire.Done:
			return all, nil
		case t != wire.Item || taken == maxProcesses:
			return nil, s.broken("the list of processes is not one, or too long")
		}
		var w wire.Record
		if err := wire.Decode(p, &w); err != nil {
			return nil, s.broken(err.Error())
		}
		rec, err := record(w, w.ID)
		if err != nil {
			return nil, err
		}
		if !running || rec.Result == nil { // an older agent lists all
			all = append(all, rec)
		}
	}
}

// Signal sends a signal to a process; with tree, to every process that it started as well. One
// that has ended is fault.State.
func (c *Client) Signal(ctx context.Context, id string, sig syscall.Signal, tree bool) error {
	return c.ask(ctx, &wire.Request{Op: wire.OpSignal, ID: id, Signal: int(sig), Tree: tree}, nil)
}

// SignalYounger sends a signal to the processes that a process has started after since, and not
// to itself. One that has ended is fault.State. The agent may have another clock than we: it is
// asked first, and what was started while it answered counts as younger, too.
func (c *Client) SignalYounger(ctx context.Context, id string, sig syscall.Signal, since time.Time) error {
	req := wire.Request{Op: wire.OpSignal, ID: id, Signal: int(sig)}
	for least, tries := time.Duration(0), 0; tries == 0 || least > closeClocks && tries < clockTries; tries++ {
		asked := time.Now()
		var info wire.Info
		if err := c.ask(ctx, &wire.Request{Op: wire.OpPing}, &info); err != nil {
			return err
		}
		now := time.Now()
		if info.ClockMS <= 0 { // it is of an earlier build, whose kernel is ours
			req.SinceMS = since.UnixMilli()
			break
		}
		if took := now.Sub(asked); tries == 0 || took < least {
			least, req.SinceClockMS = took, max(1, info.ClockMS-now.Sub(since).Milliseconds())
		}
	}
	req.YoungerMS = max(1, time.Since(since).Milliseconds())
	return c.ask(ctx, &req, nil)
}

// Where an agent takes longer to tell its clock than closeClocks, it is asked again, clockTries times in all.
const (
	closeClocks = 20 * time.Millisecond
	clockTries  = 3
)

// Kill ends a process and all that it started with SIGKILL, and waits until all of it is gone.
// The cause is recorded if there is none yet. Killing a process that is gone is not an error.
func (c *Client) Kill(ctx context.Context, id string, cause sandbox.Cause) error {
	return c.ask(ctx, &wire.Request{Op: wire.OpKill, ID: id, Cause: string(cause)}, nil)
}

// Shutdown ends all processes: it sends SIGTERM, waits at most grace, and kills what is left.
// Their records say "stopped". Until it returns nothing can be started. The agent itself stays.
func (c *Client) Shutdown(ctx context.Context, grace time.Duration) error {
	return c.ask(ctx, &wire.Request{Op: wire.OpShutdown, GraceMS: grace.Milliseconds()}, nil)
}

// End is Shutdown, behind which the agent ends, too, and with it what it is process 1 of: at once, but End does not wait for
// that. An agent that somebody else ends is fault.Unsupported.
func (c *Client) End(ctx context.Context, grace time.Duration) error {
	return c.ask(ctx, &wire.Request{Op: wire.OpEnd, GraceMS: grace.Milliseconds()}, nil)
}

// KillAll ends all processes with all that they started, by SIGKILL, and waits until nothing is
// left. Their records say "killed"; by an older agent "stopped". Nothing is forked for it inside.
func (c *Client) KillAll(ctx context.Context) error {
	return c.ask(ctx, &wire.Request{Op: wire.OpShutdown, Cause: wire.CauseKilled}, nil)
}

// ask makes a call whose answer is one message.
func (c *Client) ask(ctx context.Context, req *wire.Request, into any) error {
	s, err := c.call(ctx, req, into)
	if err != nil {
		return err
	}
	defer s.close()
	return s.finish(nil)
}

// stream is the connection of one call.
type stream struct {
	net.Conn
	c    *Client
	r    *wire.Reader
	ctx  context.Context // of the call, until detach
	stop func() bool     // takes the connection off ctx
	full func() fault.Disk

	guarded       bool // an agent that is silent ends it
	reads, writes bool // a deadline for the next word, or for what is sent, is set
	sent          int  // bytes
}

// call dials, sends a request and decodes its Reply into into, unless into is nil. The stream is
// bound to ctx until it is closed or detached.
func (c *Client) call(ctx context.Context, req *wire.Request, into any) (*stream, error) {
	s, err := c.open(ctx, req, true)
	if err != nil {
		return nil, err
	}
	if err := s.reply(into); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// others reports whether a request is for a user whom only the agent knows.
func others(req *wire.Request) bool {
	user := req.User
	if req.Start != nil {
		user = req.Start.User
	}
	return user != "" && user != sandbox.UserSandbox && user != sandbox.UserRoot
}

// open dials and sends a request. A guarded stream does not wait for ever for a silent agent.
func (c *Client) open(ctx context.Context, req *wire.Request, guarded bool) (*stream, error) {
	if !utf8.ValidString(req.Path) {
		return nil, notText("path", req.Path)
	}
	if !utf8.ValidString(req.To) {
		return nil, notText("to", req.To)
	}
	if c.root != nil && others(req) {
		req.AsRoot = c.root()
	}
	b, err := wire.AppendJSON(wire.AppendHello(nil), wire.Call, req)
	if err != nil {
		return nil, fault.New(fault.TooLarge, "the request to the sandbox's agent is too large: %s", err)
	}
	nc, err := c.connect(ctx, guarded)
	if err != nil {
		if _, ok := errors.AsType[*fault.Error](err); ok || ctx.Err() != nil {
			return nil, err
		}
		return nil, fault.Wrap(fault.Unavailable, err, "the sandbox's agent cannot be reached")
	}
	s := &stream{Conn: nc, c: c, r: wire.NewReader(nc), ctx: ctx, full: c.full, guarded: guarded}
	s.stop = context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	if err := s.send(b); err != nil {
		defer s.close()
		return nil, s.refused(err)
	}
	return s, nil
}

// refused returns the error of a call that the agent did not read completely.
func (s *stream) refused(err error) error {
	if errors.Is(err, ErrSilent) {
		return err
	}
	// The agent may have answered before it closed, with the reason.
	if told := s.reply(nil); told != nil && !fault.Is(told, fault.Unavailable) {
		return told
	}
	return s.failed(err)
}

func (s *stream) close() {
	s.stop()
	_ = s.Close()
}

// next returns the next frame that matters. A Failure is returned as its error.
func (s *stream) next() (wire.Type, []byte, error) {
	for {
		t, p, err := s.read()
		switch {
		case err != nil:
			return 0, nil, s.failed(err)
		case t == wire.Failure:
			return 0, nil, s.asFault(p)
		case !t.Ignorable():
			return t, p, nil
		}
	}
}

func (s *stream) reply(into any) error {
	t, p, err := s.next()
	if err != nil {
		return err
	}
	if t != wire.Reply {
		return s.broken("there is no reply")
	}
	if into == nil {
		return nil
	}
	if err := wire.Decode(p, into); err != nil {
		return s.broken(err.Error())
	}
	return nil
}

// finish reads the Done of a call that sends nothing else.
func (s *stream) finish(into any) error {
	t, p, err := s.next()
	if err != nil {
		return err
	}
	if t != wire.Done {
		return s.broken("there is no end")
	}
	if into == nil {
		return nil
	}
	if err := wire.Decode(p, into); err != nil {
		return s.broken(err.Error())
	}
	return nil
}

// failed returns the error of a connection that failed.
func (s *stream) failed(err error) error {
	if s.ctx != nil && s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	if fe, ok := errors.AsType[*wire.FormatError](err); ok {
		return s.broken(fe.Reason)
	}
	if told, ok := errors.AsType[*fault.Error](err); ok {
		return told
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		// Not wrapped: to a caller of Next, io.EOF is a process that ended well.
		return fault.New(fault.Unavailable, "the sandbox's agent closed the connection")
	}
	return fault.Wrap(fault.Unavailable, err, "the connection to the sandbox's agent broke")
}

func (s *stream) broken(reason string) error {
	return fault.Wrap(fault.Unavailable, &wire.FormatError{Reason: clean(reason, 200)}, "the sandbox's agent gave an answer that makes no sense")
}

// asFault decodes a Failure. Its text comes from inside the sandbox, so it is cut to size and
// cleaned, and its code must be one that an agent may use.
func (s *stream) asFault(p []byte) error {
	var w wire.Error
	if err := wire.Decode(p, &w); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the sandbox's agent gave an answer that makes no sense")
	}
	return s.told(&w)
}

// told returns an agent's error as ours.
func (s *stream) told(w *wire.Error) *fault.Error {
	code := fault.Code(w.Code)
	if !slices.Contains(fault.Codes(), code) || code == fault.Unauthenticated {
		code = fault.Internal
	}
	e := fault.New(code, "%s", clean(w.Message, 4096))
	e.Remedy = clean(w.Remedy, 1024)
	e.Inside = code == fault.Exhausted
	if code == fault.Full {
		e.Disk = fault.SandboxDisk
		if slices.Contains(fault.Disks(), w.Disk) {
			e.Disk = w.Disk
		}
		if s.full != nil {
			s.blame(e)
		}
	}
	if code == fault.PreconditionFailed && isVersion(w.Version) {
		e.Version = w.Version
	}
	if code == fault.Invalid {
		for _, f := range w.Fields[:min(len(w.Fields), 50)] {
			e.Fields = append(e.Fields, fault.Field{Name: clean(f.Name, 100), Message: clean(f.Message, 4096)})
		}
	}
	return e
}

// blame makes an error of a full disk name that disk.
func (s *stream) blame(e *fault.Error) {
	disk := s.full()
	if disk == e.Disk || disk == fault.SandboxDisk {
		return
	}
	what := e.Message
	if i := strings.LastIndex(what, ": "); i >= 0 {
		what = what[:i]
	}
	e.Disk, e.Message = disk, what+": "+DiskFull(disk)
	e.Remedy = "delete sandboxes, snapshots or volumes that are not needed"
	if disk == fault.HostDisk {
		e.Remedy += ", or free space on the host"
	}
}

// DiskFull says in words that a disk is full.
func DiskFull(disk fault.Disk) string {
	switch disk {
	case fault.StoreDisk:
		return "the disk that all sandboxes share is full"
	case fault.HostDisk:
		return "the disk of the host is full"
	}
	return "the sandbox's disk limit is reached"
}

// clean makes a string from the agent fit to be shown: valid, printable, and
// at most n bytes.
func clean(s string, n int) string {
	s = sandbox.Clip(s, n)
	if strings.IndexFunc(s, unprintable) < 0 && utf8.ValidString(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

func unprintable(r rune) bool { return !unicode.IsGraphic(r) }
