// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/tree"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// running finds a process that has not ended.
func (s *Server) running(id string) (*process, error) {
	p := s.find(id)
	if p == nil {
		if _, err := s.record(id); err != nil {
			return nil, err
		}
	}
	if p == nil || p.hasEnded() {
		return nil, hasEnded(id)
	}
	return p, nil
}

func hasEnded(id string) error { return fault.New(fault.State, "process %s has ended", id) }

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// signal sends a signal to a process, or to all that it started, or to what it
// started lately and not to itself.
func (s *Server) signal(req *wire.Request) error {
	sig, younger := unix.Signal(req.Signal), time.Duration(req.YoungerMS)*time.Millisecond
	if sig < 1 || sig > 64 {
		return fault.InvalidField("signal", "%d is outside 1 to 64", int(sig))
	}
	p, err := s.running(req.ID)
	if err != nil {
		return err
	}
	switch {
	case younger < 0:
		return fault.InvalidField("younger", "%v is below 0", younger)
	case younger > 0 && p.hosted == nil:
		since := tree.Clock() - younger
		if req.SinceClockMS != 0 {
			since = time.Duration(req.SinceClockMS) * time.Millisecond
		}
		p.signalYounger(sig, since)
		return nil
	case req.Tree:
		p.signalTree(sig)
		return nil
	}
	if err := p.signalFirst(sig); err != nil {
		return fault.Wrap(fault.State, err, "process %s has ended", req.ID)
	}
	return nil
}

// signalFirst reaches the first process and never another that has its number by now.
func (p *process) signalFirst(sig unix.Signal) error {
	if p.hosted != nil { // the shell is not the command's
		p.signalTree(sig)
		return nil
	}
	if p.pidfd == nil {
		if p.hasEnded() {
			return unix.ESRCH
		}
		return unix.Kill(p.pid, sig)
	}
	raw, err := p.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.PidfdSendSignal(int(fd), sig, nil, 0) }); err != nil {
		return err
	}
	return failed
}

// signalTree reaches all that is in the group now; what is being forked may escape.
func (p *process) signalTree(sig unix.Signal) {
	for _, pid := range p.tree() {
		_ = unix.Kill(pid, sig)
	}
}

// signalYounger reaches the members of the group that were started since then, by this
// kernel's clock, but for the first process.
func (p *process) signalYounger(sig unix.Signal, since time.Duration) {
	for _, pid := range p.tree() {
		if started, ok := tree.Started(pid); ok && pid != p.pid && started >= since {
			_ = unix.Kill(pid, sig)
		}
	}
}

// tree lists the live members.
func (p *process) tree() []int {
	if p.hosted != nil {
		return p.hosted.younger()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.group == nil {
		if !p.srv.owns(p) {
			return nil
		}
		return tree.Below(p.pid, !p.hasEnded())
	}
	if p.groupIsGone {
		return nil
	}
	if parent, ok := p.group.(Parent); ok {
		return parent.Members()
	}
	if fd := p.group.FD(); fd >= 0 {
		if pids, err := members(fd); err == nil {
			return pids
		}
	}
	return tree.Below(p.pid, !p.hasEnded())
}

// owns reports whether p's number was not given to a later child of ours.
func (s *Server) owns(p *process) bool {
	s.forkMu.Lock()
	defer s.forkMu.Unlock()
	q := s.children[p.pid]
	return q == nil || q == p
}

// kill ends the process and all that it started, and keeps the first reason.
func (p *process) kill(cause, detail string) {
	p.ending(cause, detail)
	p.killTree()
}

// killGroup ends what is in the group; it may come late, when the group is gone.
func (p *process) killGroup() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.group != nil && !p.groupIsGone {
		_ = p.group.Kill()
	}
}

func (p *process) killTree() {
	if p.hosted != nil { // who wants no more than its processes ended sends them a signal
		if !p.hasEnded() {
			p.hosted.shell.kill(wire.CauseKilled, "a command in it was killed")
		}
		return
	}
	p.mu.Lock()
	group := p.group
	if p.groupIsGone {
		p.mu.Unlock()
		return
	}
	if group != nil {
		err := group.Kill() // under the lock: the group is not removed meanwhile
		p.mu.Unlock()
		if err == nil {
			return
		}
		p.srv.o.Logger.Error("killing a process group", "id", p.rec.ID, "error", err)
	} else {
		p.mu.Unlock()
	}
	tree.Kill(p.tree)
	if !p.hasEnded() {
		_ = p.signalFirst(unix.SIGKILL)
	}
}

// kill answers a kill. It waits until nothing is left; one that is gone already is
// no error.
func (s *Server) kill(ctx context.Context, id, cause string) error {
	p := s.find(id)
	if p == nil {
		_, err := s.record(id)
		return err
	}
	detail := "killed on request"
	switch cause {
	case "":
		cause = wire.CauseKilled
	case wire.CauseKilled:
	case wire.CauseTimeout:
		detail = "its time limit passed"
	case wire.CauseStopped:
		detail = "the sandbox was stopped"
	default:
		detail = "killed on request (" + message.Clip(cause, 40) + ")"
	}
	if len(cause) > 40 {
		return fault.InvalidField("cause", "%q is not a valid cause", message.Clip(cause, 40))
	}
	p.kill(cause, detail)
	return p.waitGone(ctx)
}

// killPatience is how often a kill is repeated for those that were being forked
// when it came. With a group it is not needed.
const killPatience = 50 * time.Millisecond

func (p *process) waitGone(ctx context.Context) error {
	for {
		select {
		case <-p.gone:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(killPatience):
			p.killTree()
		}
	}
}

// shutdown ends all processes: SIGTERM, and SIGKILL for what is left after
// grace. While it goes on nothing is started. Nothing is forked for it, so that it works
// where no process can be made.
func (s *Server) shutdown(ctx context.Context, grace time.Duration, cause string) error {
	detail := "the sandbox was stopped"
	switch cause {
	case "":
		cause = wire.CauseStopped
	case wire.CauseStopped:
	case wire.CauseKilled:
		detail = "killed on request, with all that ran in the sandbox"
	default:
		return fault.InvalidField("cause", "%q is neither %q nor %q", message.Clip(cause, 40), wire.CauseStopped, wire.CauseKilled)
	}
	const longest = 10 * time.Minute
	if grace < 0 || grace > longest {
		return fault.InvalidField("grace", "%v is outside 0 to %v", grace, longest)
	}
	s.mu.Lock()
	s.refuse++
	s.mu.Unlock()
	procs := s.processes()
	defer func() {
		s.mu.Lock()
		s.refuse--
		s.mu.Unlock()
	}()
	if grace > 0 {
		for _, p := range procs {
			p.ending(cause, detail)
			p.signalTree(unix.SIGTERM)
			p.signalTree(unix.SIGCONT)
		}
		patience, cancel := context.WithTimeout(ctx, grace)
		for _, p := range procs {
			select {
			case <-p.gone:
			case <-patience.Done():
			}
		}
		cancel()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, p := range procs {
		p.ending(cause, detail)
		p.killTree()
	}
	var wg sync.WaitGroup
	for _, p := range procs {
		wg.Go(func() { _ = p.waitGone(ctx) })
	}
	wg.Wait()
	return ctx.Err()
}

// ending keeps why the process is about to end, if nothing else ended it before.
func (p *process) ending(cause, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killCause == "" && p.rec.Result == nil {
		p.killCause, p.killDetail = cause, detail
	}
}
