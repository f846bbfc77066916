// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/cleanup"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/host"
	"sandpit.dev/linux/spawn"
)

// reserveIDs takes a range of user ids, with its user and network namespaces.
func (s *start) reserveIDs(context.Context) (err error) {
	if s.ids, err = s.d.uids.take(); err == nil {
		s.undo.Add(func() { s.d.uids.give(s.ids) })
	}
	return err
}

// launchProcess begins to start process 1 in the group.
func (s *start) launchProcess(ctx context.Context) error {
	return s.launchIn(ctx, s.group.Dir, nil)
}

// launchIn begins to start process 1 in the directory of the group that open opens, and in the
// cgroup namespace names; nil: in one that begins there.
func (s *start) launchIn(ctx context.Context, open func() (*os.File, error), names *os.File) (err error) {
	if s.launch, err = s.i.launch(ctx, s.group, open, names, s.ids); err != nil {
		s.launch = nil
		return err
	}
	s.undo.Add(func() { s.endProcess() })
	return nil
}

// awaitProcess waits until process 1 is in its namespaces.
func (s *start) awaitProcess(context.Context) (err error) {
	if s.first == nil {
		if s.first, err = s.launch.awaitNamespaces(); err != nil {
			s.first, s.launch = nil, nil // nothing is left of it
		}
	}
	return err
}

// awaitProgram waits until process 1 has executed its program.
func (s *start) awaitProgram(ctx context.Context) error {
	if err := s.awaitProcess(ctx); err != nil {
		return err
	}
	return s.first.awaitProgram()
}

// saveState writes what the next server needs to find this life again.
func (s *start) saveState(context.Context) error {
	s.undo.Add(func() { _ = s.i.remove(host.StateFile) })
	state, err := host.StateOf(s.first.pid, s.ids.Base, s.d.boot)
	if err == nil {
		s.first.state = state
		err = state.Write(s.d.instances.Root, string(s.i.id))
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the state of sandbox %s cannot be written", s.i.id)
	}
	s.d.checkpoint("create.state")
	return nil
}

// endProcess ends process 1, however far it has come.
func (s *start) endProcess() {
	if s.launch == nil || s.awaitProcess(context.Background()) != nil {
		return
	}
	s.first.end(s.i)
}

// firstProcess is a sandbox's process 1 that was started, and has not served yet.
type firstProcess struct {
	pid   int
	pidfd *os.File
	agent *cgroup.Agent
	state host.State // as it was written; zero before
	// conn is the server's end of the boot socket. Process 1 ends when that closes
	// before the message came.
	conn   *net.UnixConn
	launch *launch // nil: it executes its program
}

// launch is a process 1 on its way to its program. It is ended by awaitNamespaces or awaitProgram.
type launch struct {
	d       *Driver
	agent   *cgroup.Agent
	birth   *spawn.Birth
	conn    *net.UnixConn
	undo    cleanup.Stack
	release cleanup.Stack // process 1 has its own once it is in its namespaces
}

// launch begins to start process 1, with its socket, all or nothing. It takes the network
// namespace over.
func (i *Instance) launch(ctx context.Context, group *cgroup.Group, open func() (*os.File, error), names *os.File, uids uidRange) (_ *launch, err error) {
	d := i.d
	n := &launch{d: d}
	defer func() {
		if err != nil {
			n.release.Run()
			n.undo.Run()
		}
	}()
	n.release.Add(func() {
		_ = uids.kit.Net.Close()
		uids.kit.Net = nil
	})
	if n.agent, err = d.cgroups.Agent(group.ID()); err != nil {
		return nil, err
	}
	n.release.Add(n.agent.CloseFiles)
	n.undo.Add(func() { d.removeAgent(n.agent) })
	dir, err := open()
	if err != nil {
		return nil, err
	}
	n.release.Add(func() { _ = dir.Close() })
	listener, err := i.listen()
	if err != nil {
		return nil, err
	}
	n.release.Add(func() { _ = listener.Close() })
	n.undo.Add(func() { _ = i.remove(socketFile) })
	d.checkpoint("create.socket")
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	n.conn = ours
	n.release.Add(func() { _ = theirs.Close() })
	n.undo.Add(func() { _ = ours.Close() })
	n.birth, err = d.starter.Begin(ctx, spawn.Process{
		Program:  d.agent,
		Args:     []string{agentName},
		Env:      agentEnv,
		Files:    []*os.File{d.null, d.null, d.null, listener, theirs},
		UserNS:   uids.NS,
		NetNS:    uids.kit.Net,
		Cgroup:   dir,
		CgroupNS: names,
		Groups:   n.agent.Files(),
		Mounts:   d.mounts,
		Script:   d.script.Birth(),
		KeepCaps: agentCaps,
	})
	if err != nil && ctx.Err() == nil {
		err = notStarted(err)
	}
	return n, err
}

func notStarted(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the sandbox's first process cannot be started").
		WithRemedy("run `sandpit doctor` on the host")
}

// awaitNamespaces waits until process 1 is in its namespaces. It may still be on its way to
// its program, see [firstProcess.awaitProgram]. After an error nothing is left of it.
func (n *launch) awaitNamespaces() (*firstProcess, error) {
	pid, err := n.birth.Born()
	if err == nil {
		var pidfd *os.File
		if pidfd, err = openProcess(pid); err == nil {
			n.d.checkpoint("create.born")
			return &firstProcess{pid: pid, pidfd: pidfd, agent: n.agent, conn: n.conn, launch: n}, nil
		}
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	pid, failed := n.finish()
	if failed != nil {
		return nil, failed // which says more
	}
	_, _ = unix.Wait4(pid, nil, unix.WALL, nil) // it may not have come to its program
	n.undo.Run()
	return nil, notStarted(err)
}

// finish ends the launch, when process 1 has executed its program, or ended. After an error
// that is reaped, and nothing is left of the launch.
func (n *launch) finish() (pid int, err error) {
	pid, err = n.birth.Wait()
	n.release.Run()
	if err != nil {
		n.undo.Run()
		return 0, notStarted(err)
	}
	return pid, nil
}

// awaitProgram waits until process 1 has executed its program, and sets its score: before, it
// shares the server's memory, and the kernel would give the server the same.
func (f *firstProcess) awaitProgram() error {
	n := f.launch
	if n == nil {
		return nil
	}
	f.launch = nil
	pid, err := n.finish()
	if err == nil {
		err = score(pid)
	}
	return err
}

// end ends it, and frees what it has but its group.
func (f *firstProcess) end(i *Instance) {
	_ = host.Kill(f.pidfd)
	_ = f.awaitProgram()
	_, _ = waitProcess(f.pidfd) // where it came to that
	_ = f.pidfd.Close()
	_ = f.conn.Close()
	_ = i.remove(socketFile)
	i.d.removeAgent(f.agent)
}

func openProcess(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "process %s cannot be watched", strconv.Itoa(pid))
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}
