// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// serveStart answers a start: it starts the command and follows it.
func (s *Server) serveStart(ctx context.Context, c *call.Conn, req *wire.Request) error {
	if err := s.checkStart(req.ID, req.Start); err != nil {
		return err
	}
	in, err := s.receiveStdin(c, req.ID, req.Start)
	if err != nil {
		return err
	}
	sp, err := s.prepare(req.Start, req.AsRoot, &in)
	if err != nil {
		return err
	}
	if req.Start.Held {
		err = c.End()
	}
	if err == nil && c.Gone() {
		err = net.ErrClosed
	}
	var p *process
	if err == nil {
		p, err = s.start(ctx, req.ID, sp)
	}
	if err != nil {
		sp.drop()
		return err
	}
	defer p.release()
	off, unreadable := p.seek(0, 0)
	if unreadable == nil && c.Send(wire.Reply, p.snapshot()) == nil {
		err := p.serve(ctx, c, off, req.Start.Lossless)
		if t := req.Start.Terminal; t == nil || t.Stays {
			return err
		}
	}
	if p.terminal != nil {
		p.hangUp()
	}
	return unreadable
}

// start runs a command that was prepared, once nothing is suspended; ctx bounds the wait.
// The process that it gives is held; see release. After an error sp is the caller's to drop.
func (s *Server) start(ctx context.Context, id string, sp *spawn) (*process, error) {
	if err := s.pause.enter(ctx); err != nil {
		return nil, err
	}
	defer s.pause.leave()
	if err := s.reserve(id); err != nil {
		return nil, err
	}
	p := sp.p
	if s.o.Refresh != nil {
		s.o.Refresh()
	}
	err := s.fork(id, sp)
	s.mu.Lock()
	if err != nil {
		delete(s.procs, id)
		s.mu.Unlock()
		return nil, err
	}
	s.procs[id] = p
	late := s.refuse > 0 || s.closed
	s.mu.Unlock()
	if p.pid == 0 && p.hosted == nil {
		p.holders++
		p.putAway()
		close(p.gone)
		return p, nil
	}
	s.sockets.begin()
	p.holders++
	p.run(time.Duration(sp.st.TimeoutMS) * time.Millisecond)
	if late { // a shutdown began meanwhile and did not see it
		p.kill(wire.CauseStopped, "the sandbox was stopped")
	}
	return p, nil
}

// reserve takes an id for a process that is about to start.
func (s *Server) reserve(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch _, exists := s.procs[id]; {
	case exists:
		return processExists(id)
	case s.refuse > 0 || s.closed:
		return fault.New(fault.State, "all that runs in the sandbox is being ended; it starts nothing now").
			WithRemedy("try again in a moment; start the sandbox first where it was stopped")
	case len(s.procs) >= maxRunning:
		return fault.New(fault.Exhausted, "the sandbox has %d processes, its agent's bound", len(s.procs)).
			WithRemedy("kill some of them")
	}
	s.procs[id] = nil
	return nil
}

func processExists(id string) error {
	return fault.New(fault.Exists, "there is a process %s in this sandbox already", id).
		WithRemedy("choose another id, or attach to that process")
}

// fork makes the log and the group of a prepared process, and starts it. After an error
// nothing of these is left.
func (s *Server) fork(id string, sp *spawn) (err error) {
	p, st := sp.p, sp.st
	if p.log, err = s.newLog(id, st.MaxStdout+st.MaxStderr); err != nil {
		switch {
		case errors.Is(err, unix.EEXIST):
			return processExists(id)
		case fault.Is(err, fault.Full):
			return err
		}
		return fault.Wrap(fault.Internal, err, "the log of the process could not be made")
	}
	if st.Rolling {
		p.log.rolling(st.MaxStdout + st.MaxStderr)
	}
	if st.Lossless {
		p.log.renewing(max(st.MaxStdout+st.MaxStderr, leastLog))
	}
	defer func() {
		if err != nil {
			p.log.close()
			_ = unix.Unlinkat(s.logDir, logName(id), 0)
			s.budget.giveBack(p.log.room)
		}
	}()
	if n := recordRoom(st); p.log.fit(n, time.Time{}) < n {
		return logsFull()
	}
	if s.o.Groups != nil && p.hosted == nil {
		if p.group, err = s.o.Groups.New(id); err != nil {
			return groupFailed(err)
		}
		defer func() {
			if err != nil {
				_ = p.tryRemoveGroup()
			}
		}()
	}
	sp.id = id
	failed := sp.run()
	if failed != nil && !failed.inside {
		return failed.err
	}
	p.rec = wire.Record{
		ID: id, State: wire.Running, Cwd: wire.EscapeName(st.Cwd), User: p.view.Identity().Name,
		Terminal: st.Terminal != nil, Rolling: st.Rolling || st.Lossless, Started: p.began, PID: p.pid,
	}
	if p.hosted != nil {
		p.rec.PID = p.hosted.shell.pid
	}
	set := s.values.get(st.Redact)
	p.redactStreams(set)
	p.rec.Argv, p.rec.Shell, p.rec.Clipped = clipCommand(redactStart(st, set))
	if err := p.beginLog(); err != nil {
		return err
	}
	if st.Lossless {
		p.readers = &readers{left: time.Now(), leftAt: p.log.first}
	}
	if failed != nil {
		p.neverRan(failed, set.String(failed.text))
	}
	return nil
}

// recordRoom is the most that the record of a command takes in its log.
func recordRoom(st *wire.Start) int64 {
	n := 1<<10 + spelled(st.Cwd) + spelled(message.Clip(st.Shell, wire.MaxRecordText))
	left := wire.MaxRecordText
	for _, a := range st.Argv {
		if left > 0 {
			n += spelled(message.Clip(a, left)) + len(`"",`)
			left -= len(a)
		}
	}
	return int64(n)
}

// spelled is how many bytes a string has in JSON at most.
func spelled(s string) int {
	n := len(s)
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			n += len(`\u0000`) - 1
		}
	}
	return n
}

func logsFull() error {
	return fault.NoSpace(fault.SandboxDisk, nil, "what is kept of the output of the sandbox's processes leaves no room for another one").
		WithRemedy("kill processes that wrote much, end what follows them, or give the sandbox a larger disk")
}

func groupFailed(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EAGAIN) {
		return fault.Wrap(fault.Exhausted, err, "no process group could be made: the sandbox has too many")
	}
	return fault.Wrap(fault.Internal, err, "no process group could be made for the command")
}

// beginLog writes LogStart. The streams are not read yet, so that it comes first.
func (p *process) beginLog() error {
	b, err := wire.AppendJSON(make([]byte, wire.LogHeaderLen-wire.HeaderLen), wire.LogStart, p.rec)
	if err != nil {
		return err
	}
	// AppendJSON's own header stands where the log's prefix ends; it is written over.
	wire.PutLogHeader(b, wire.LogStart, 0, p.began)
	if !p.log.add(b, 2*maxTail) {
		return fault.New(fault.Exhausted, "the log of the process could not be begun")
	}
	if !p.log.markFloor(p.began) {
		return fault.New(fault.Exhausted, "the log of the process could not be begun")
	}
	p.log.first = p.log.end()
	p.log.floor = p.log.first
	return nil
}

// neverRan makes the process one that a shell would have made of a program
// that cannot be run: a line on stderr, and 127 or 126.
func (p *process) neverRan(failed *spawnError, text string) {
	if p.group != nil {
		_ = p.tryRemoveGroup()
	}
	b := make([]byte, wire.LogHeaderLen, 256)
	b = append(b, text...)
	b = append(b, '\n')
	stream := &stream{t: wire.LogStderr, limit: wire.DefaultOutput}
	if p.merged {
		stream.t = wire.LogStdout
		p.streams[0] = stream
	} else {
		p.streams[1] = stream
	}
	p.output(stream, b)
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rec.State = wire.Exited
	p.rec.Result = &wire.Result{ExitCode: failed.code, Ended: now, DurationNS: int64(now.Sub(p.began))}
	p.countLocked(p.rec.Result)
	p.endLocked(now)
}

// hangUp ends what ran in a terminal whose other end is gone.
func (p *process) hangUp() {
	const patience = 2 * time.Second
	select {
	case <-p.ended:
	default:
		if p.srv.pause.enter(p.srv.ctx) == nil { // what stands still does so until it may go on
			_ = unix.Kill(-p.pid, unix.SIGHUP)
			_ = unix.Kill(-p.pid, unix.SIGCONT)
			p.srv.pause.leave()
		}
		ctx, cancel := context.WithTimeout(p.srv.ctx, patience)
		defer cancel()
		_ = p.done(ctx)
	}
	p.kill(wire.CauseKilled, fmt.Sprintf("its terminal was closed, and it did not end within %v", patience))
}
