// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/host"
	"sandpit.dev/runtime/native/boot"
)

// serveTimeout bounds the wait for the word of an agent that has all it needs. It takes a
// millisecond.
const serveTimeout = 20 * time.Second

// serving is the wait for an agent's word that it serves. Nobody stands in it: the sandbox is
// given out as soon as its process 1 has all it needs, and whoever calls it meanwhile finds
// the socket open, and is answered once the agent gets there. That millisecond is also what
// the way to the caller and back takes. An agent that says why it cannot serve, or nothing,
// is one whose process 1 has ended: a sandbox that went down, with that as the reason.
type serving struct {
	conn  *net.UnixConn
	then  func()        // called when the wait is over, however it ended
	heard chan struct{} // closed then
	err   error         // why the agent does not serve; holds once heard is closed
}

// failed waits until the wait is over, which it is soon after process 1 has ended, and gives
// why the agent did not serve; nil: it did, or that process 1 ended says all there is to say.
func (s *serving) failed() error {
	if s == nil {
		return nil
	}
	<-s.heard
	return s.err
}

// handOver sends the agent what it needs.
func (s *start) handOver(context.Context) error {
	m := boot.Message{
		UserFilter: s.d.userFilter, RootFilter: s.d.rootFilter, AgentCaps: agentCaps, RootCaps: rootCaps, Reap: s.d.reap,
		LogBytes: uint64(s.spec.Limits.LogBytes()), Score: commandScore,
	}
	if s.d.cgroups.Info().Err(cgroup.Sockets) != nil {
		m.OpenFiles = commandFiles
	}
	if a := s.spec.Account; a != nil {
		full := a.Full()
		m.Account = &boot.Account{Name: full.Name, Home: full.Home, Workdir: full.Workdir, Again: a.Again}
	}
	s.files.Facts, s.files.Sudo = s.ids.kit.Sys, s.ids.kit.Sudo
	_ = s.first.conn.SetWriteDeadline(time.Now().Add(serveTimeout))
	if err := boot.Send(s.first.conn, m, s.files); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the agent of sandbox %s did not start", s.i.id)
	}
	s.d.checkpoint("create.told")
	return nil
}

// serve makes what was started the instance's life.
func (s *start) serve(ctx context.Context) error {
	s.undo.Release()
	_ = s.inside.View.Close() // not as late as the rest: it holds the overlay
	s.held = append(s.held, s.ids.kit)
	s.ids.kit = nil
	l := &live{
		pid: s.first.pid, pidfd: s.first.pidfd, root: s.root, uids: s.ids, group: s.group, agent: s.first.agent,
		image: s.spec.Image.Root, state: s.first.state,
		serving: &serving{conn: s.first.conn, heard: make(chan struct{}), then: s.leave},
	}
	if call, err := s.i.connect(ctx); err == nil { // the agent will find it waiting
		l.line.keep(call)
	}
	s.i.begin(l)
	return nil
}

// hear waits for the word of the agent of l, and ends a life whose agent does not give it.
func (i *Instance) hear(l *live) {
	s := l.serving
	defer s.then()
	defer close(s.heard)
	defer func() { _ = s.conn.Close() }()
	defer context.AfterFunc(i.d.running, func() { _ = s.conn.SetReadDeadline(time.Unix(1, 0)) })()
	for {
		_ = s.conn.SetReadDeadline(time.Now().Add(i.d.patience))
		if i.d.running.Err() != nil {
			return // the sandbox goes on, and the next server sees for itself
		}
		err := boot.Await(s.conn)
		switch {
		case err == nil, i.d.running.Err() != nil, errors.Is(err, boot.ErrEnded):
			return
		case errors.Is(err, os.ErrDeadlineExceeded) && i.Paused():
			continue // it says nothing while it stands
		}
		s.err = fault.Wrap(fault.Unavailable, err, "the agent did not start")
		i.d.log.Error("a sandbox is ended whose agent did not start", "sandbox", i.id, "error", err)
		if err := i.kill(l); err != nil {
			i.d.log.Error("a sandbox whose agent did not start cannot be killed", "sandbox", i.id, "error", err)
		}
		return
	}
}

// openRoot opens the root of a sandbox's process 1 that a server started which was killed,
// perhaps before that had got to its root.
func openRoot(pid int, pidfd *os.File) (*os.File, error) {
	const look = time.Millisecond
	for deadline := time.Now().Add(endPatience); ; {
		root, err := os.Open("/proc/" + strconv.Itoa(pid) + "/root")
		if err != nil {
			return nil, err
		}
		var st unix.Statfs_t
		if err = unix.Fstatfs(int(root.Fd()), &st); err == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC {
			return root, nil
		}
		_ = root.Close()
		if err != nil {
			return nil, &os.PathError{Op: "statfs", Path: root.Name(), Err: err}
		}
		if time.Now().After(deadline) {
			_ = host.Kill(pidfd) // nobody will ever get an answer of it
			return nil, errors.New("its process 1 has not got there")
		}
		if host.Ended(pidfd, look) {
			continue // which opens it no more
		}
	}
}
