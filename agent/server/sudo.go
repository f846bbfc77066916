// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/fork"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/sudo"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// Bounds of sudo. Whoever asks lives in the sandbox, and the agent's time and memory are not its own.
const (
	sudoWaiting  = 256              // connections, before more are refused
	sudoRunning  = 128              // commands at a time
	sudoPatience = 10 * time.Second // for a place among those
	sudoRequest  = 5 * time.Second  // for a request to arrive
	sudoAtOnce   = 1000             // requests after a time without
	sudoEvery    = 2 * time.Millisecond
)

// sudoers is what the Server knows of sudo, and who uses it now.
type sudoers struct {
	policy  atomic.Value  // a string, see wire.SudoOn
	waiting atomic.Int64  // connections
	slots   chan struct{} // held by commands
	due     time.Time     // of the accept loop: see pace
}

// setSudo says who may use sudo from now on. What it runs already goes on.
func (s *Server) setSudo(policy string) error {
	switch policy {
	case wire.SudoOff, wire.SudoOn, wire.SudoForbidden:
	default:
		return fault.InvalidField("sudo", "%q is none of %q, %q and %q", message.Clip(policy, 40), wire.SudoOff, wire.SudoOn, wire.SudoForbidden)
	}
	if policy == wire.SudoOn && !s.sudoWorks() {
		return fault.New(fault.Unsupported, "the sandbox's agent cannot run commands by sudo").WithRemedy("run commands with user root")
	}
	s.sudo.policy.Store(policy)
	if policy == wire.SudoOn {
		s.linkSudo()
	}
	return nil
}

// linkSudo puts a link to sudo's program where login shells, which set PATH anew, find it. What is there already
// stays, and a disk that takes no link is found out by who looks for it.
func (s *Server) linkSudo() {
	root, err := s.rootView("root")
	if err != nil {
		return
	}
	root.Do(func() {
		dir, err := s.files.Open("/usr/local/bin", unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return
		}
		defer unix.Close(dir)
		_ = unix.Symlinkat(sudo.Program, dir, path.Base(sudo.Program))
	})
}

// sudoWorks reports whether a command can be started beside one that runs, as the sandbox's root.
func (s *Server) sudoWorks() bool {
	_, ok := s.o.Groups.(*cgroups)
	return s.o.SudoSocket && s.o.Root != nil && ok && fork.MayBeAlone
}

// ServeSudo answers the sandbox's sudo off l, a unix socket that programs of this sandbox alone reach, until ctx is
// done; then it closes l and kills what it runs. It is called once.
func (s *Server) ServeSudo(ctx context.Context, l *net.UnixListener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		conn, err := l.AcceptUnix()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.ECONNABORTED):
			select { // the kernel would hand us the same connection at once
			case <-ctx.Done():
				return nil
			case <-time.After(50 * time.Millisecond):
			}
			continue
		case err != nil:
			return err
		}
		s.work.Go(func() { s.serveSudo(ctx, conn) })
		s.sudo.pace(ctx)
	}
}

// pace keeps who asks again and again from the processor that the agent answers its callers with.
func (u *sudoers) pace(ctx context.Context) {
	now := time.Now()
	if first := now.Add(-sudoAtOnce * sudoEvery); u.due.Before(first) {
		u.due = first
	}
	if u.due = u.due.Add(sudoEvery); u.due.After(now) {
		select {
		case <-ctx.Done():
		case <-time.After(u.due.Sub(now)):
		}
	}
}

// refusal is why a command does not run, in words for who typed it.
type refusal struct{ text string }

func (r refusal) Error() string { return r.text }

func refuse(format string, args ...any) error { return refusal{fmt.Sprintf(format, args...)} }

// serveSudo answers one request.
func (s *Server) serveSudo(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	defer s.rest.used()
	defer s.threaded()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	e := &elevation{srv: s, conn: conn}
	defer e.close()
	if err := e.serve(ctx); err != nil {
		text := "the agent failed: " + err.Error()
		if r, ok := errors.AsType[refusal](err); ok {
			text = r.text
		} else if f, ok := errors.AsType[*fault.Error](err); ok {
			text = strings.TrimSpace(f.Message + ". " + f.Remedy)
		}
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = conn.Write(sudo.Frame{Kind: sudo.Refused, Text: text}.Append(nil))
	}
}

// elevation is one request of sudo's, and the command that it became.
type elevation struct {
	srv    *Server
	conn   *net.UnixConn
	caller *process // the command that the caller belongs to
	uid    int      // the caller's, as the kernel tells it
	gid    int
	peer   *os.File // a pidfd of the caller's
	pid    int
	req    *sudo.Request
	files  [sudo.Descriptors]int
	got    int // how many of them came
	slot   bool
}

func (e *elevation) close() {
	for _, fd := range e.files[:e.got] {
		_ = unix.Close(fd) // which a socket of the caller's may delay: the slot is held meanwhile
	}
	e.got = 0
	if e.peer != nil {
		_ = e.peer.Close()
	}
	if e.slot {
		<-e.srv.sudo.slots
	}
	e.srv.sudo.waiting.Add(-1)
}

func (e *elevation) serve(ctx context.Context) error {
	s := e.srv
	if s.sudo.waiting.Add(1) > sudoWaiting {
		return refuse("%d requests wait already, which is as many as this sandbox's agent takes at a time; try again", sudoWaiting)
	}
	if err := e.identify(); err != nil {
		return err
	}
	_ = e.conn.SetReadDeadline(time.Now().Add(sudoRequest))
	var err error
	if e.req, err = sudo.Read(e); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return refuse("the request did not arrive within %v", sudoRequest)
		}
		return refusal{err.Error()}
	}
	_ = e.conn.SetReadDeadline(time.Time{})
	if e.got != sudo.Descriptors {
		return refuse("%d descriptors came, and %d are sent", e.got, sudo.Descriptors)
	}
	if err := e.admit(); err != nil {
		return err
	}
	if e.req.Action == sudo.Validate {
		_, err := e.conn.Write(sudo.Frame{Kind: sudo.Exited}.Append(nil))
		return err
	}
	wait, cancel := context.WithTimeout(ctx, sudoPatience)
	defer cancel()
	select {
	case s.sudo.slots <- struct{}{}:
		e.slot = true
	case <-wait.Done():
		return refuse("%d commands that were started with sudo run, which is as many as this sandbox's agent runs at a time; wait for one to end", sudoRunning)
	}
	return e.run(ctx)
}

// identify finds out from the kernel who asks. A pidfd is of the process that connected, whoever has its number by
// the time that it is looked at.
func (e *elevation) identify() error {
	raw, err := e.conn.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var failed error
	pidfd := -1
	err = raw.Control(func(fd uintptr) {
		if cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); failed != nil {
			return
		}
		if cred.Pid <= 1 {
			return
		}
		if pidfd, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD); failed == unix.ENOPROTOOPT {
			pidfd, failed = unix.PidfdOpen(int(cred.Pid), 0) // before Linux 6.5
		}
	})
	switch {
	case err != nil:
		return err
	case failed == unix.ESRCH || failed == unix.EINVAL:
		return refuse("the program that asks has ended")
	case failed != nil:
		return os.NewSyscallError("getsockopt", failed)
	case cred.Pid <= 1:
		return refuse("the program that asks is none of this sandbox")
	}
	unix.CloseOnExec(pidfd)
	e.peer, e.pid, e.uid, e.gid = pollable(pidfd, "pidfd"), int(cred.Pid), int(cred.Uid), int(cred.Gid)
	return nil
}

// Read reads from the connection, with the descriptors that come along the first time. More of them, or some later,
// are closed, and then the request is refused.
func (e *elevation) Read(b []byte) (int, error) {
	var oob [128]byte
	n, oobn, flags, _, err := e.conn.ReadMsgUnix(b, oob[:])
	if oobn > 0 {
		if failed := e.take(oob[:oobn], flags); failed != nil {
			return 0, failed
		}
	}
	if err == nil && n == 0 && len(b) > 0 {
		err = net.ErrClosed
	}
	return n, err
}

var errDescriptors = refusal{fmt.Sprintf("descriptors came twice, or more than the %d that are sent; they were closed", sudo.Descriptors)}

func (e *elevation) take(oob []byte, flags int) error {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return errDescriptors
	}
	var came []int
	for _, m := range messages {
		if fds, err := unix.ParseUnixRights(&m); err == nil {
			came = append(came, fds...)
		}
	}
	if flags&unix.MSG_CTRUNC != 0 || len(came) != sudo.Descriptors || e.got > 0 || e.req != nil {
		for _, fd := range came {
			_ = unix.Close(fd)
		}
		return errDescriptors
	}
	e.got = copy(e.files[:], came)
	return nil
}

// admit says whether the caller may use sudo, and finds the command that it belongs to.
func (e *elevation) admit() error {
	s := e.srv
	user := s.account.Load().view.Identity()
	policy, _ := s.sudo.policy.Load().(string)
	switch {
	case e.uid == 0: // it has what it asks for
	case !s.sudoWorks():
		return refuse("refused by this sandbox's runtime: it runs no commands by sudo; run them with user root")
	case policy == wire.SudoForbidden:
		return refuse("refused by the server: its setting allow_root is false, and nothing runs as root in its sandboxes")
	case policy != wire.SudoOn:
		return refuse("refused by this sandbox: its sudo is off; have its owner switch it on (sudo: true), or run the command with user root")
	case e.uid != user.UID:
		return refuse("refused by this sandbox: user %d may not use sudo; %s may", e.uid, user.Name)
	}
	if !s.sudoWorks() {
		return refuse("refused by this sandbox's runtime: it runs no commands by sudo; run them with user root")
	}
	if e.caller = s.processOf(e.pid); e.caller == nil || e.ended() {
		return refuse("the program that asks belongs to no command of this sandbox")
	}
	return nil
}

// ended reports whether the caller has ended, and its number may be another's.
func (e *elevation) ended() (ended bool) {
	raw, err := e.peer.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) { ended = readable(int(fd)) })
	return ended || err != nil
}

func readable(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if err != unix.EINTR {
			return n > 0 || err != nil
		}
	}
}

// processOf returns the command in whose group a process is; nil: in none.
func (s *Server) processOf(pid int) *process {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		group, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !ok {
			continue
		}
		name := group[strings.LastIndexByte(group, '/')+1:]
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range s.procs {
			if p == nil {
				continue
			}
			if c, ok := p.group.(*cgroup); ok && c.name == name && !p.lost() {
				return p
			}
		}
	}
	return nil
}

// lost reports whether the process's group was removed, and may be another's.
func (p *process) lost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.groupIsGone
}
