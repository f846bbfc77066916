// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"io"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// hosted is the process of a shell's command: a record and a log of the agent's, into which the command
// writes by pipes. The server follows it as any other process.
type hosted struct {
	process *agent.Process     // the connection that it began with; nil: an earlier server began it
	output  *engine.Background // for who reads it
	over    chan struct{}      // closed when all of the output was read, or is not read any more
	result  *sandbox.Result    // as the agent has it, after over; nil: it is not known
	stop    context.CancelFunc
}

// hold sends a shell's command to the agent, which makes itself ready while the intent is committed. Where that
// fails, deliverTo tells.
func (x *cell) hold(ctx context.Context, k *codeKernel) {
	if x.cc.record().Name == "" {
		return
	}
	secrets, err := x.u.Secrets(ctx)
	if err != nil {
		x.heldErr = err
		return
	}
	x.held, x.heldErr = x.u.Client().HoldIn(ctx, k.process.ID(), agent.Command{
		ID: x.ids.CellID, Shell: x.r.Code, Cwd: x.cc.record().Cwd, StreamStdin: x.command.StreamStdin, Merge: x.command.MergeOutput,
		MaxStdout: x.command.MaxStdout, MaxStderr: x.command.MaxStderr, Redact: append(secrets[:len(secrets):len(secrets)], x.command.Redact...),
	})
}

// dropHeld lets go of a command that was held and did not run.
func (x *cell) dropHeld() {
	if x.held != nil {
		x.held.Drop()
	}
	x.held, x.heldErr = nil, nil
}

// deliverTo is the [kernel.Cell]'s Deliver for a shell's command; nil for a cell that is none.
func (x *cell) deliverTo(k *codeKernel) func(context.Context, func(*kernel.Streams) []byte) (bool, error) {
	if x.cc.record().Name == "" {
		return nil
	}
	return func(ctx context.Context, request func(*kernel.Streams) []byte) (told bool, err error) {
		if x.held == nil && x.heldErr == nil { // an earlier shell has ended
			x.hold(ctx, k)
		}
		held, err := x.held, x.heldErr
		if x.held, x.heldErr = nil, nil; err != nil {
			return false, x.u.Fail(ctx, err)
		}
		return x.runHeld(ctx, k, held, request)
	}
}

// runHeld has the shell run the command, of which request is the text that it reads. With an agent of an earlier build the command is no process of its own.
func (x *cell) runHeld(ctx context.Context, k *codeKernel, held *agent.Held, request func(*kernel.Streams) []byte) (told bool, err error) {
	text := request(x.streams("\x00"))
	if len(text) > agent.MaxRunText {
		text = nil
	}
	p, err := held.Run(text)
	switch {
	case fault.Is(err, fault.Unsupported) && !x.command.StreamStdin && !x.command.MergeOutput:
		return true, k.process.Write(ctx, request(nil))
	case fault.Is(err, fault.State):
		if shell, gone := x.u.Client().Process(ctx, k.process.ID()); gone == nil && shell.Result != nil {
			return true, k.process.Write(ctx, request(nil)) // the session finds that out, and another shell takes the command
		}
	}
	if err != nil {
		return false, x.u.Fail(ctx, err)
	}
	x.tellStarted()
	if err = x.listen(p); err == nil && text == nil {
		err = k.process.Write(ctx, request(x.streams(p.Streams())))
	}
	return true, err
}

// streams are those of the command, for the path that its agent gives them.
func (x *cell) streams(path string) *kernel.Streams {
	s := &kernel.Streams{Out: path + "1"}
	if x.command.StreamStdin {
		s.In = path + "0"
	}
	if !x.command.MergeOutput {
		s.Err = path + "2"
	}
	return s
}

// listen has the output of the process read, from its first byte on: by a connection that is there, or another.
func (x *cell) listen(p *agent.Process) error {
	b, err := x.u.AdoptBackground(x.event, p, 0)
	if err != nil {
		if p != nil {
			_ = p.Close()
		}
		return err
	}
	h := &hosted{process: p, output: b, over: make(chan struct{}), stop: func() {}}
	x.mu.Lock()
	x.hosted = h
	x.mu.Unlock()
	ready := make(chan struct{})
	x.s.engine.Go(func(ctx context.Context) {
		defer close(h.over)
		defer b.Abandon()
		defer b.Close()
		ctx, h.stop = context.WithCancel(ctx)
		close(ready)
		defer h.stop()
		for {
			fr, err := b.Next(ctx)
			if err == io.EOF {
				res := b.Result()
				h.result = &res
			}
			if err != nil {
				return
			}
			x.output(ctx, int(fr.Stream-sandbox.Stdout), fr.Data)
		}
	})
	<-ready
	return nil
}

// Bounds of an agent's answer that a command has ended: by the connection that the command began with, and asked
// apart from it.
const (
	wordBound  = 2 * time.Second
	wordsBound = 10 * time.Second
)

// endHosted tells the agent how the command ended, and returns when all that it wrote was read. What the
// agent says of the output goes into the result.
func (x *cell) endHosted(ctx context.Context) {
	h := x.hosted
	if h == nil {
		return
	}
	out := &x.out
	end := sandbox.Result{ExitCode: out.ExitCode, Signal: out.Signal, Cause: out.Cause, CauseDetail: ofShell(out.CauseDetail)}
	if end.Signal == "" && (out.Status == Interrupted || out.Status == TimedOut) {
		end.Signal = "SIGINT"
	}
	if h.process == nil || h.process.Conclude(end) != nil || !h.within(wordBound) {
		ctx, cancel := context.WithTimeout(ctx, wordsBound)
		defer cancel()
		if _, err := x.u.Client().Conclude(ctx, x.ids.CellID, end); err != nil { // its sandbox is down, and the log on the disk has what there is
			h.stop()
		}
	}
	<-h.over // a caller who is slow to take the output has its connection broken in the end
	if res := h.result; res != nil {
		out.StdoutBytes, out.StderrBytes = res.StdoutBytes, res.StderrBytes
		x.cut = [2]bool{res.StdoutTruncated, res.StderrTruncated}
	}
}

// within reports whether all was read before a time has passed.
func (h *hosted) within(bound time.Duration) bool {
	t := time.NewTimer(bound)
	defer t.Stop()
	select {
	case <-h.over:
		return true
	case <-t.C:
		return false
	}
}

// dropHosted ends the process of a command that never ran.
func (x *cell) dropHosted(ctx context.Context) {
	if x.hosted == nil {
		return
	}
	x.out.ExitCode, x.out.Cause, x.out.CauseDetail = exitKilled, sandbox.CauseKilled, "it was not run"
	x.endHosted(ctx)
}

// leaveHosted waits for the end of the reading, which ends with the server.
func (x *cell) leaveHosted() {
	if x.hosted != nil {
		<-x.hosted.over
	}
}

// rehost goes on with the process of a command that an earlier server began, if it has one.
func (x *cell) rehost(ctx context.Context) error {
	if x.event == nil || x.cc.record().Name == "" {
		return nil
	}
	if _, err := x.u.Client().Process(ctx, x.ids.CellID); err != nil {
		return nil // it is of an earlier build, or was not begun
	}
	return x.listen(nil)
}

// pastCommand is ShellCommand for what is not in memory: its row, and its log.
func (s *Service) pastCommand(ctx context.Context, c access.Caller, ref string, shell sandbox.Context, id string, wait time.Duration) (ShellResult, error) {
	row := func() (ev *sandbox.Event, err error) {
		err = s.store.View(ctx, func(tx store.Tx) error {
			rows, _, err := tx.Events().List(store.EventQuery{Sandbox: shell.Sandbox, ProcessID: id, Types: []sandbox.EventType{sandbox.EventExec}, Limit: 1})
			if err == nil && len(rows) == 1 && rows[0].ContextID == shell.ID {
				ev = rows[0]
			}
			return err
		})
		return ev, err
	}
	ev, err := row()
	if err == nil && (ev == nil || id == "") {
		err = fault.New(fault.NotFound, "no command %q was run in the shell %q", sandbox.Clip(id, 40), shell.Name).
			WithRemedy("see the sandbox's activity, or list its processes")
	}
	if err != nil {
		return ShellResult{}, err
	}
	rec, err := s.engine.WaitProcess(ctx, c, ref, id, wait)
	if err != nil {
		return ShellResult{}, err
	}
	r := ShellResult{Shell: ShellState{Name: shell.Name, ID: shell.ID}}
	r.ProcessID, r.Running = id, rec.Result == nil
	if rec.Result != nil {
		r.Result = *rec.Result
		if ev, err = row(); err != nil || ev == nil {
			return ShellResult{}, err
		}
		r.Changes, r.ChangesTotal, r.ChangesComplete = ev.Changes, ev.ChangesTotal, len(ev.Changes) == ev.ChangesTotal
	}
	var kept [2][]byte
	f, err := s.engine.Follow(ctx, c, ref, id, engine.FollowRequest{Once: true, Own: true})
	if err == nil {
		_, err = f.Run(ctx, engine.FollowSink{Frame: func(fr sandbox.Frame) error {
			i := int(fr.Stream - sandbox.Stdout)
			kept[i] = append(kept[i], fr.Data[:min(len(fr.Data), engine.DefaultOutput-len(kept[i]))]...)
			return nil
		}})
		f.Close()
	}
	if err != nil && !fault.Is(err, fault.State) && !fault.Is(err, fault.NotFound) {
		return ShellResult{}, err
	}
	r.Stdout, r.Stderr = kept[0], kept[1]
	if !r.Running {
		r.StdoutTruncated = r.StdoutTruncated || int64(len(kept[0])) < r.StdoutBytes
		r.StderrTruncated = r.StderrTruncated || int64(len(kept[1])) < r.StderrBytes
	}
	return r, nil
}
