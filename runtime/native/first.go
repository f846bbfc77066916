// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/cleanup"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/host"
	"sandpit.dev/linux/spawn"
)

// firstProcess is a sandbox's process 1 that was started, and has not served yet.
type firstProcess struct {
	pid   int
	pidfd *os.File
	group *cgroup.Group
	agent *cgroup.Agent
	state host.State // as it was written; zero before
	// conn is the server's end of the boot socket. Process 1 ends when that closes
	// before the message came.
	conn   *net.UnixConn
	launch *launch // nil: it has arrived at its program
}

// launch is a process 1 on its way to its program. It is ended by born or finish.
type launch struct {
	d       *Driver
	group   *cgroup.Group
	agent   *cgroup.Agent
	birth   *spawn.Birth
	conn    *net.UnixConn
	undo    cleanup.Stack
	release cleanup.Stack // process 1 has its own by the time it is born
}

// launch begins to start process 1, with its socket, all or nothing, in the directory of its
// group that open opens, and in the cgroup namespace names; nil: in one that begins there. It
// takes the network namespace over, and with success the group.
func (i *Instance) launch(ctx context.Context, group *cgroup.Group, open func() (*os.File, error), names *os.File, uids uidRange) (_ *launch, err error) {
	d := i.d
	n := &launch{d: d, group: group}
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
		Tape:     d.tape.Birth(),
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

// born waits until process 1 is in its namespaces. It may still be on its way to its program,
// see [firstProcess.arrive]. After an error nothing is left of it.
func (n *launch) born() (*firstProcess, error) {
	pid, err := n.birth.Born()
	if err == nil {
		var pidfd *os.File
		if pidfd, err = openProcess(pid); err == nil {
			n.d.checkpoint("create.born")
			return &firstProcess{pid: pid, pidfd: pidfd, group: n.group, agent: n.agent, conn: n.conn, launch: n}, nil
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

// arrive waits until process 1 has executed its program, and gives it its score: before, it
// shares the server's memory, and the kernel would give the server the same.
func (f *firstProcess) arrive() error {
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

// start is launch, and waits until process 1 has executed its program.
func (i *Instance) start(ctx context.Context, group *cgroup.Group, open func() (*os.File, error), names *os.File, uids uidRange) (*firstProcess, error) {
	n, err := i.launch(ctx, group, open, names, uids)
	if err != nil {
		return nil, err
	}
	first, err := n.born()
	if err == nil {
		if err = first.arrive(); err != nil {
			_ = first.pidfd.Close()
		}
	}
	return first, err
}

// end undoes what start did.
func (f *firstProcess) end(i *Instance) {
	_ = host.Kill(f.pidfd)
	_ = f.arrive()
	_, _ = waitProcess(f.pidfd) // where it arrived
	_ = f.pidfd.Close()
	_ = f.conn.Close()
	_ = i.remove(socketFile)
	_ = f.group.Remove(context.Background())
	i.d.removeAgent(f.agent)
}

// listen makes the agent's socket. It is bound through the directory's
// descriptor, since a socket's path has at most 107 bytes.
func (i *Instance) listen() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fault.Wrap(fault.Exhausted, err, "the host has no socket left")
	}
	f := os.NewFile(uintptr(fd), "agent") // blocking here: we never accept, and the agent sets what it needs
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: i.d.socketPath(i.id)})
	if errors.Is(err, unix.EADDRINUSE) { // of a life that no server saw the end of
		if err = i.remove(socketFile); err == nil || errors.Is(err, fs.ErrNotExist) {
			err = unix.Bind(fd, &unix.SockaddrUnix{Name: i.d.socketPath(i.id)})
		}
	}
	if err == nil {
		err = unix.Listen(fd, 256)
	}
	if err != nil {
		_ = f.Close()
		return nil, fault.Wrap(fault.Internal, err, "the agent's socket of sandbox %s cannot be made", i.id)
	}
	return f, nil
}

func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Exhausted, err, "the host has no socket left")
	}
	a := os.NewFile(uintptr(p[0]), "boot")
	defer func() { _ = a.Close() }()
	conn, err := net.FileConn(a)
	if err != nil {
		_ = unix.Close(p[1])
		return nil, nil, fault.Wrap(fault.Internal, err, "the boot socket cannot be used")
	}
	return conn.(*net.UnixConn), os.NewFile(uintptr(p[1]), "boot"), nil
}
