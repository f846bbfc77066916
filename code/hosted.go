// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
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
	output *engine.Background
	over   chan struct{} // closed when all of the output was read, or is not read any more
	stop   context.CancelFunc
}

// host makes the process of a shell's command, which is about to be sent. A cell that is none has none,
// nor a command where the agent is of an earlier build; the streams are nil then.
func (x *cell) host(ctx context.Context, k *codeKernel) (*kernel.Streams, error) {
	rec := x.cc.record()
	if rec.Name == "" {
		return nil, nil
	}
	secrets, err := x.u.Secrets(ctx)
	if err != nil {
		return nil, err
	}
	cmd := agent.Command{
		ID: x.ids.CellID, Shell: x.r.Code, Cwd: rec.Cwd, StreamStdin: x.command.StreamStdin, Merge: x.command.MergeOutput,
		MaxStdout: x.command.MaxStdout, MaxStderr: x.command.MaxStderr, Redact: append(secrets[:len(secrets):len(secrets)], x.command.Redact...),
	}
	_, path, err := x.u.Client().StartIn(ctx, k.process.ID(), cmd)
	if fault.Is(err, fault.Unsupported) && !x.command.StreamStdin && !x.command.MergeOutput {
		return nil, nil
	}
	if fault.Is(err, fault.State) {
		if shell, gone := x.u.Client().Process(ctx, k.process.ID()); gone == nil && shell.Result != nil {
			return nil, nil // the session is about to find that out, and another shell takes the command
		}
	}
	if err != nil {
		return nil, x.u.Fail(ctx, err)
	}
	if err := x.listen(); err != nil {
		return nil, err
	}
	s := &kernel.Streams{Out: path + "1"}
	if cmd.StreamStdin {
		s.In = path + "0"
	}
	if !cmd.Merge {
		s.Err = path + "2"
	}
	return s, nil
}

// listen has the output of the process read, from its first byte on.
func (x *cell) listen() error {
	b, err := x.u.AdoptBackground(x.event, 0)
	if err != nil {
		return err
	}
	h := &hosted{output: b, over: make(chan struct{}), stop: func() {}}
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
			if err != nil {
				return
			}
			x.output(ctx, int(fr.Stream-sandbox.Stdout), fr.Data)
		}
	})
	<-ready
	return nil
}

// wordsBound is how long an agent may take to answer that a command has ended.
const wordsBound = 10 * time.Second

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
	ctx, cancel := context.WithTimeout(ctx, wordsBound)
	defer cancel()
	rec, err := x.u.Client().Conclude(ctx, x.ids.CellID, end)
	if err != nil || rec.Result == nil { // its sandbox is down, and the log on the disk has what there is
		h.stop()
		<-h.over
		return
	}
	<-h.over // a caller who is slow to take the output has its connection broken in the end
	out.StdoutBytes, out.StderrBytes = rec.Result.StdoutBytes, rec.Result.StderrBytes
	x.cut = [2]bool{rec.Result.StdoutTruncated, rec.Result.StderrTruncated}
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
	return x.listen()
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
