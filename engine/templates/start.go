// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

const (
	tail      = 2048                  // bytes of output that are told of a start that is not ready
	tailBound = 2 * time.Second       // for reading them
	lookBound = 2 * time.Second       // for one look at a port
	leftOver  = 50 * time.Millisecond // that a probe has at least, of a start that is old already
)

// probe is what looks with a command: one process inside, on record, instead of one for each look.
const probe = `until sh -c "$1" </dev/null >/dev/null 2>&1; do sleep "$2" 2>/dev/null || sleep 1; done`

// starter is who begins what a template starts.
func starter(project string) access.Caller {
	return access.Caller{Project: project, Actor: "the start command", Via: "system", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
}

// Late returns a function for the engine's options, and one that sets whom it calls.
func Late() (up func(*sandbox.Sandbox), set func(*Service)) {
	var s *Service
	return func(b *sandbox.Sandbox) {
		if s != nil {
			s.Up(b)
		}
	}, func(to *Service) { s = to }
}

// Up is told by the engine that a sandbox is up, in its turn.
func (s *Service) Up(b *sandbox.Sandbox) {
	if b.State != sandbox.Running || b.StartProcess() == "" || b.Readiness() != nil {
		return
	}
	done := make(chan struct{})
	s.mu.Lock()
	s.starting[b.ID] = done
	s.mu.Unlock()
	s.engine.Go(func(ctx context.Context) {
		defer func() {
			s.mu.Lock()
			if s.starting[b.ID] == done {
				delete(s.starting, b.ID)
			}
			s.mu.Unlock()
			close(done)
		}()
		if err := s.start(ctx, b); err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("what became of a start command is not known", "sandbox", b.ID, "error", err)
		}
	})
}

// await waits until the sandbox's last start is ready, or is known not to be.
func (s *Service) await(ctx context.Context, id sandbox.ID) error {
	s.mu.Lock()
	done := s.starting[id]
	s.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// start begins the start command of a sandbox that is as b says, unless it is begun, and commits whether it
// is ready. Where the sandbox goes down meanwhile there is nothing to commit.
func (s *Service) start(ctx context.Context, b *sandbox.Sandbox) error {
	if err := s.engine.WaitReady(ctx); err != nil {
		return err
	}
	c, ref, pid := starter(b.Project), string(b.ID), b.StartProcess()
	u, err := s.engine.Peek(ctx, c, ref)
	if fault.Is(err, fault.State) || fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer u.End()
	s.o.Checkpoint("start.up")
	w := &starting{s: s, u: u, c: c, ref: ref, pid: pid, of: b.StartedAt, ready: b.Template.Start.Ready}
	why, err := w.begin(ctx, b.Template.Start.Command)
	s.o.Checkpoint("start.begun")
	if err == nil && why == "" {
		why, err = w.probe(ctx)
	}
	if err != nil || ctx.Err() != nil {
		if w.over(ctx) {
			return nil
		}
		return err
	}
	return w.commit(ctx, why)
}

// starting is one start on its way.
type starting struct {
	s     *Service
	u     *engine.Use
	c     access.Caller
	ref   string
	pid   string
	of    time.Time
	ready sandbox.Probe
}

// over reports whether the start is another one's by now, or nobody's.
func (w *starting) over(ctx context.Context) bool {
	is, err := w.s.engine.Get(ctx, w.c, w.ref)
	return fault.Is(err, fault.NotFound) || err == nil && (is.State != sandbox.Running || is.StartProcess() != w.pid)
}

// begin begins the command, unless an earlier server did. why is why it cannot be ready.
func (w *starting) begin(ctx context.Context, command string) (why string, err error) {
	rec, err := w.s.engine.Process(ctx, w.c, w.ref, w.pid)
	if fault.Is(err, fault.NotFound) {
		if w.over(ctx) {
			return "", fault.New(fault.State, "the sandbox %s went down meanwhile", w.ref)
		}
		rec, err = w.s.engine.StartProcess(ctx, w.c, w.ref, engine.StartRequest{Shell: command, User: sandbox.UserSandbox, ProcessID: w.pid})
		if err != nil && !fault.Is(err, fault.State) && ctx.Err() == nil && !w.over(ctx) {
			return "it cannot be begun: " + fault.As(err).Message, nil
		}
		if err == nil && w.over(ctx) { // the sandbox was started anew in between
			_ = w.s.engine.KillProcess(ctx, w.c, w.ref, w.pid)
		}
	}
	if err != nil {
		return "", err
	}
	return failed(rec), nil
}

// failed says how the start command failed; "": it did not.
func failed(p sandbox.Process) string {
	r := p.Result
	switch {
	case r == nil || r.ExitCode == 0 && r.Signal == "":
		return "" // one that ends well has begun something
	case r.Cause != sandbox.CauseNone:
		return strings.TrimSuffix(fmt.Sprintf("the start command ended (%s): %s", r.Cause, r.CauseDetail), ": ")
	}
	return fmt.Sprintf("the start command ended with exit code %d", r.ExitCode)
}

// probe looks until what was started is ready. why is why it is not.
func (w *starting) probe(ctx context.Context) (why string, err error) {
	if w.ready.None() {
		return "", nil
	}
	left := max(w.ready.Timeout-w.s.engine.Now().Sub(w.of), leftOver)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make(chan error, 1)
	go func() {
		if w.ready.Port != 0 {
			found <- w.lookAtPort(ctx, left)
			return
		}
		found <- w.lookByCommand(ctx, left)
	}()
	tick := time.NewTicker(max(w.ready.Interval, 100*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case err := <-found:
			if fault.Is(err, fault.Timeout) {
				return fault.As(err).Message, nil
			}
			return "", err
		case <-tick.C:
		}
		one, end := context.WithTimeout(ctx, lookBound)
		rec, err := w.u.Client().Process(one, w.pid)
		end()
		if err == nil {
			if why = failed(rec); why != "" {
				cancel()
				<-found
				return why, nil
			}
		}
	}
}

func (w *starting) lookAtPort(ctx context.Context, left time.Duration) error {
	end := time.NewTimer(left)
	defer end.Stop()
	tick := time.NewTicker(w.ready.Interval)
	defer tick.Stop()
	for {
		one, cancel := context.WithTimeout(ctx, lookBound)
		conn, err := w.u.Client().DialPort(one, w.ready.Port)
		cancel()
		if err == nil {
			return conn.Close()
		}
		if _, down := w.down(ctx, err); down {
			return fault.New(fault.State, "the sandbox %s went down", w.ref)
		}
		select {
		case <-tick.C:
		case <-end.C:
			return fault.New(fault.Timeout, "nothing listens on port %d after %v", w.ready.Port, w.ready.Timeout)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// down reports whether an error is that of a sandbox that went down, and not of a port.
func (w *starting) down(ctx context.Context, err error) (error, bool) {
	if fault.Is(err, fault.State) {
		return err, true
	}
	return nil, w.over(ctx)
}

func (w *starting) lookByCommand(ctx context.Context, left time.Duration) error {
	res, err := w.s.engine.Exec(ctx, w.c, w.ref, engine.ExecRequest{
		Argv: []string{"/bin/sh", "-c", probe, "ready", w.ready.Command, fmt.Sprintf("%.2f", w.ready.Interval.Seconds())},
		User: sandbox.UserSandbox, Timeout: left, KillOnDisconnect: true,
	}, nil)
	switch {
	case err != nil:
		return err
	case res.Cause == sandbox.CauseTimeout:
		return fault.New(fault.Timeout, "the ready command has not ended with 0 after %v", w.ready.Timeout)
	case res.ExitCode != 0:
		return fault.New(fault.Timeout, "the ready command cannot be run: exit code %d", res.ExitCode)
	}
	return nil
}

// commit records whether the start is ready.
func (w *starting) commit(ctx context.Context, why string) error {
	ev := w.u.NewCallEvent(sandbox.EventReady)
	ev.ProcessID, ev.OK, ev.Detail = w.pid, why == "", sandbox.Clip(why, sandbox.MaxEventDetail)
	ready := sandbox.Readiness{Of: w.of, At: ev.At, OK: ev.OK, Reason: ev.Detail}
	if !ready.OK {
		ready.Output = w.tail(ctx)
	}
	err := w.u.RecordChange(ctx, ev, func(b *sandbox.Sandbox) {
		if b.Template != nil && b.StartProcess() == w.pid {
			t := *b.Template
			t.Ready = ready
			b.Template = &t
		}
	})
	if fault.Is(err, fault.State) {
		return nil
	}
	return err
}

// tail returns the last that the start command wrote, as far as that can be read.
func (w *starting) tail(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, tailBound)
	defer cancel()
	f, err := w.s.engine.Follow(ctx, w.c, w.ref, w.pid, engine.FollowRequest{Recent: tail, Once: true, Own: true})
	if err != nil {
		return ""
	}
	defer f.Close()
	var out []byte
	_, _ = f.Run(ctx, engine.FollowSink{Frame: func(fr sandbox.Frame) error {
		out = last(append(out, fr.Data...), tail)
		return nil
	}})
	return strings.ToValidUTF8(string(out), "\uFFFD")
}

// last returns the last n bytes.
func last(b []byte, n int) []byte { return b[max(len(b)-n, 0):] }
