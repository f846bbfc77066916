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
	"sandpit.dev/runtime/native/cgroup"
	"sandpit.dev/runtime/native/spawn"
)

// firstProcess is a sandbox's process 1 that was started, and has not served yet.
type firstProcess struct {
	pid   int
	pidfd *os.File
	group *cgroup.Group
	state state // as it was written; zero before
	// conn is the server's end of the boot socket. Process 1 ends when that closes
	// before the message came.
	conn *net.UnixConn
}

// start starts process 1 in its group, with its socket, all or nothing, and blocks its
// thread meanwhile. It takes the network namespace over, and the group if it succeeds.
func (i *Instance) start(group *cgroup.Group, uids uidRange) (*firstProcess, error) {
	return i.startIn(group, group.Dir, uids)
}

// startIn is start in the directory of the group that open opens.
func (i *Instance) startIn(group *cgroup.Group, open func() (*os.File, error), uids uidRange) (*firstProcess, error) {
	d := i.d
	var undo, release cleanup.Stack // release: process 1 has its own by the time it is born
	defer undo.Run()
	defer release.Run()
	release.Add(func() { // process 1 has it
		_ = uids.kit.Net.Close()
		uids.kit.Net = nil
	})

	dir, err := open()
	if err != nil {
		return nil, err
	}
	release.Add(func() { _ = dir.Close() })
	listener, err := i.listen()
	if err != nil {
		return nil, err
	}
	release.Add(func() { _ = listener.Close() })
	undo.Add(func() { _ = i.remove(socketFile) })
	d.checkpoint("create.socket")
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	release.Add(func() { _ = theirs.Close() })
	undo.Add(func() { _ = ours.Close() })
	pid, err := d.starter.Start(spawn.Process{
		Program:  d.agent,
		Args:     []string{agentName},
		Env:      agentEnv,
		Files:    []*os.File{d.null, d.null, d.null, listener, theirs},
		UserNS:   uids.ns,
		NetNS:    uids.kit.Net,
		Cgroup:   dir,
		Groups:   d.agents,
		Mounts:   d.mounts,
		Tape:     d.tape.Birth(),
		KeepCaps: agentCaps,
	})
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the sandbox's first process cannot be started").
			WithRemedy("run `sandpit doctor` on the host")
	}
	d.checkpoint("create.born")
	pidfd, err := openProcess(pid)
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
		return nil, err
	}
	undo.Release()
	return &firstProcess{pid: pid, pidfd: pidfd, group: group, conn: ours}, nil
}

// end undoes what launch did.
func (f *firstProcess) end(i *Instance) {
	_ = kill(f.pidfd)
	_, _ = waitProcess(f.pidfd)
	_ = f.pidfd.Close()
	_ = f.conn.Close()
	_ = i.remove(socketFile)
	_ = f.group.Remove(context.Background())
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
