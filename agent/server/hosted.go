// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/tree"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// hosting is the part of a process that runs inside another one, a shell: nothing is forked for it. Its
// streams are named pipes, made with the rights of the shell's user, which the shell opens while the
// command runs. It ends when the server says so, or with the shell.
//
// Background jobs of the command, and any process of the sandbox's user, may keep the pipes open after
// that. The agent goes on reading and drops what it reads, so that no writer gets SIGPIPE, until all
// writers have closed the pipes or the shell's processes are gone.
type hosting struct {
	shell   *process
	since   time.Duration // by this kernel's clock, when it began
	path    string        // of the pipes, before their numbers
	writers [2]int        // our own write ends of its outputs, until it has ended; -1: none
	input   int           // the pipe of its input, by O_PATH; -1: none
	told    chan *wire.Result
	opened  chan struct{} // closed when the wait for who reads its input is over; nil: it has none
}

// pipeDirs are where the pipes are made: in the first that takes them.
var pipeDirs = [...]string{"/dev/shm", "/tmp"}

// serveRunIn has a shell run a command, and follows that.
func (s *Server) serveRunIn(ctx context.Context, c *call.Conn, req *wire.Request) error {
	st := req.Start
	if err := s.checkStart(req.ID, st); err != nil {
		return err
	}
	if st.Terminal != nil || st.StdinSize > 0 || st.Held || st.TimeoutMS > 0 || st.Lossless {
		return fault.InvalidField("start", "a command in a shell has no terminal, no input that is given at once, and no time limit")
	}
	text, err := receiveText(c)
	if err == nil && c.Gone() {
		err = net.ErrClosed
	}
	if err != nil {
		return err
	}
	shell, err := s.running(req.In)
	if err != nil {
		return err
	}
	if shell.hosted != nil || shell.pid == 0 {
		return fault.New(fault.State, "process %s is no shell", message.Clip(req.In, 80))
	}
	if text != nil {
		if shell.stdinTurn == nil {
			return noStdin(req.In)
		}
		if err := shell.takeStdinFor(ctx, c); err != nil {
			return err
		}
	}
	sp := &spawn{
		p: &process{
			srv: s, view: shell.view, merged: st.Merge, ended: make(chan struct{}), gone: make(chan struct{}), oomKills: -1, refusals: -1,
			hosted: &hosting{shell: shell, writers: [2]int{-1, -1}, input: -1, told: make(chan *wire.Result, 1)},
		},
		st: st, dir: -1, child: [3]int{-1, -1, -1}, master: -1, pidfd: -1,
	}
	p, err := s.start(ctx, req.ID, sp)
	if err != nil {
		if text != nil {
			shell.giveStdin()
		}
		sp.p.dropPipes()
		sp.drop()
		return err
	}
	defer p.release()
	if text != nil { // to its end, whoever goes away: a shell with half of it would be of no use
		s.work.Go(func() { shell.say(bytes.ReplaceAll(text, []byte{0}, []byte(p.hosted.path))) })
	}
	off, unreadable := p.seek(0, 0)
	rec := p.snapshot()
	rec.Streams = p.hosted.path
	if unreadable != nil || c.Send(wire.Reply, rec) != nil {
		return unreadable
	}
	return p.serve(ctx, c, off, false)
}

// receiveText reads Data up to its End; nil: there is none.
func receiveText(c *call.Conn) (text []byte, err error) {
	for {
		b, err := c.Data()
		switch {
		case err != nil:
			return nil, err
		case b == nil:
			return text, nil
		case len(text)+len(b) > wire.MaxData:
			return nil, fault.New(fault.Malformed, "what the shell is to read has more than %d bytes", wire.MaxData)
		}
		text = append(text, b...)
	}
}

// takeStdinFor is takeStdin for a client, who may go away meanwhile.
func (p *process) takeStdinFor(ctx context.Context, c *call.Conn) error {
	select {
	case p.stdinTurn <- struct{}{}:
		return nil
	default:
	}
	ctx, done := c.Until(ctx)
	err := p.takeStdin(ctx)
	done()
	_ = c.SetReadDeadline(time.Time{})
	return err
}

// say writes to the input of a shell, of which the caller has the turn, and gives that back. A shell that takes
// nothing any more is ended: nobody could tell it anything.
func (p *process) say(text []byte) {
	defer p.giveStdin()
	if _, err := p.writeInTurn(p.srv.ctx, text); err != nil && !p.hasEnded() {
		p.kill(wire.CauseKilled, "its input is closed, and it takes no command")
	}
}

// host makes the pipes of a command in a shell.
func (sp *spawn) host() *spawnError {
	p := sp.p
	p.began, p.hosted.since = time.Now(), tree.Clock()
	var err error
	for _, dir := range pipeDirs {
		p.hosted.path = dir + "/.sandpit-" + sp.id + "."
		p.view.Do(func() { err = sp.makePipes() })
		if err == nil {
			break
		}
		p.dropPipes()
		sp.drop()
	}
	if err != nil {
		return outside(fault.Wrap(fault.Exhausted, err, "the command's streams could not be made: the sandbox has too many open files, or no room for them in /dev/shm and /tmp"))
	}
	if p.hosted.input >= 0 {
		p.stdinTurn, p.hosted.opened = make(chan struct{}, 1), make(chan struct{})
		p.stdinTurn <- struct{}{} // it is awaitReader's
		p.srv.work.Go(p.awaitReader)
	}
	return nil
}

// makePipes does so on the view's thread. Whatever else stands under a name is not opened.
func (sp *spawn) makePipes() error {
	p, h := sp.p, sp.p.hosted
	if sp.st.StreamStdin {
		if err := unix.Mkfifo(h.path+"0", 0o600); err != nil {
			return err
		}
		fd, err := unix.Open(h.path+"0", unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if h.input = fd; !isPipe(fd) {
			return unix.EEXIST
		}
	}
	for i, t := range []wire.Type{wire.LogStdout, wire.LogStderr} {
		if i == 1 && sp.st.Merge {
			break
		}
		name := h.path + strconv.Itoa(i+1)
		if err := unix.Mkfifo(name, 0o600); err != nil {
			return err
		}
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if !isPipe(fd) {
			_ = unix.Close(fd)
			return unix.EEXIST
		}
		p.streams[i] = sp.stream(t, pollable(fd, "output"))
		if h.writers[i], err = unix.Open(name, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
	}
	return nil
}

func isPipe(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
}

// awaitReader opens the input of a command for writing once the shell has opened it for reading: before
// that a pipe looks as it does at its end. It blocks a thread until the shell comes to the command.
func (p *process) awaitReader() {
	h := p.hosted
	fd, err := openPipe(h.input, unix.O_WRONLY)
	if err == nil {
		p.stdinMu.Lock()
		if p.hasEnded() {
			_ = unix.Close(fd)
		} else {
			p.stdin = pollable(fd, "stdin")
		}
		p.stdinMu.Unlock()
	}
	p.giveStdin()
	close(h.opened)
}

// openPipe opens a pipe of which there is a descriptor.
func openPipe(fd, flags int) (int, error) {
	for {
		got, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), flags|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return got, err
		}
	}
}

// dropPipes takes the pipes' names away, and closes what we have of them but to read.
func (p *process) dropPipes() {
	h := p.hosted
	if h.path == "" {
		return // it did not come to that
	}
	p.view.Do(func() {
		for i := range 3 {
			_ = unix.Unlink(h.path + strconv.Itoa(i))
		}
	})
	descriptor.CloseAll(h.writers[:])
	if h.input < 0 {
		return
	}
	if h.opened != nil { // who waits for a reader gets one, and sees that it is over
		fd, err := openPipe(h.input, unix.O_RDONLY|unix.O_NONBLOCK)
		for err != nil { // too many files are open
			select {
			case <-h.opened:
			case <-time.After(10 * time.Millisecond):
				fd, err = openPipe(h.input, unix.O_RDONLY|unix.O_NONBLOCK)
				continue
			}
			break
		}
		<-h.opened
		if err == nil {
			_ = unix.Close(fd)
		}
	}
	_ = unix.Close(h.input)
	h.input = -1
}

// tell ends a command in a shell, as the server has it. The first end stands.
func (s *Server) tell(ctx context.Context, c *call.Conn, req *wire.Request) error {
	p := s.find(req.ID)
	if p == nil {
		rec, err := s.record(req.ID)
		if err != nil {
			return err
		}
		return c.Answer(rec)
	}
	if p.hosted == nil || req.Result == nil {
		return fault.New(fault.State, "process %s is no command in a shell, or how it ended is missing", message.Clip(req.ID, 80))
	}
	p.hosted.tell(req.Result)
	ctx, done := c.Until(ctx)
	defer done()
	if err := p.done(ctx); err != nil {
		return err
	}
	return c.Answer(p.snapshot())
}

// tell passes on how the command ended, unless that is known.
func (h *hosting) tell(end *wire.Result) {
	select {
	case h.told <- end:
	default:
	}
}

// waitHosted sees a command in a shell through.
func (p *process) waitHosted() {
	h := p.hosted
	var end *wire.Result
	select {
	case end = <-h.told:
	case <-h.shell.ended:
		h.shell.mu.Lock()
		end = h.shell.rec.Result
		h.shell.mu.Unlock()
	}
	p.deferred.Stop()
	p.drainRest()
	p.logAllHeld()
	p.concludeAs(end)
	runtime.Gosched()
	p.dropPipes()
	p.closeStdin()
	dry := make(chan struct{})
	p.srv.work.Go(func() { p.pumps.Wait(); close(dry) })
	select {
	case <-dry:
	case <-h.shell.gone:
		for _, st := range p.streams {
			if st != nil {
				st.over.Store(true)
				_ = st.f.SetReadDeadline(longAgo)
			}
		}
		<-dry
	}
	p.putAway()
	p.srv.threaded()
	close(p.gone)
}

// concludeAs makes the result stand.
func (p *process) concludeAs(end *wire.Result) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	res := &wire.Result{
		DurationNS: int64(now.Sub(p.began)), Ended: now, ExitCode: end.ExitCode, Signal: message.Clip(end.Signal, 16),
		Cause: message.Clip(end.Cause, 40), CauseDetail: message.Clip(end.CauseDetail, 500),
	}
	if p.killCause != "" {
		res.Cause, res.CauseDetail = p.killCause, p.killDetail
	}
	p.countLocked(res)
	p.rec.State, p.rec.Result = wire.Exited, res
	p.endLocked(now)
}

// younger lists what a shell has started since a command in it began.
func (h *hosting) younger() []int {
	var pids []int
	for _, pid := range h.shell.tree() {
		if started, ok := tree.Started(pid); ok && pid != h.shell.pid && started >= h.since-clockTick {
			pids = append(pids, pid)
		}
	}
	return pids
}

// clockTick is how exact the kernel's times of starts are.
const clockTick = 10 * time.Millisecond
