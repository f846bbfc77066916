// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package furnish

import (
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/spawn"
)

// older is what scripts need on a kernel before Linux 6.15, which attaches nothing to a
// mount that is attached nowhere, has no open_tree_attr(2), and before 6.11 gives no
// descriptor of a namespace for one of a process. nil: the kernel has all that.
type older struct {
	// proc is the host's /proc: the one that a child sees knows nothing of it. The number is
	// a constant of the scripts.
	proc *os.File
}

func openOlder() (*older, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	return &older{proc: proc}, nil
}

func (o *older) Close() error {
	if o == nil {
		return nil
	}
	return o.proc.Close()
}

// Requests of ioctl(2) on a pidfd, see linux/pidfd.h: a descriptor of a namespace. A
// path below /proc, as older kernels need it, takes five times as long.
const (
	getMountNS = 0xff03
	getNetNS   = 0xff04
	mountNS    = "self/ns/mnt"
	netNS      = "self/ns/net"
)

// own opens a namespace of the child that runs the script.
func (o *older) own(p *spawn.Script, what string, request uintptr, path string) spawn.Arg {
	if o != nil {
		return p.Open(what, spawn.Never, unix.SYS_OPENAT, spawn.Int(o.proc.Fd()), p.Text(path), spawn.Int(unix.O_RDONLY|unix.O_CLOEXEC))
	}
	pid := p.Do(what+": who", spawn.Never, unix.SYS_GETPID)
	self := p.Open(what+": pidfd", spawn.Never, unix.SYS_PIDFD_OPEN, pid, spawn.Int(0))
	return p.Open(what, spawn.Never, unix.SYS_IOCTL, self, spawn.Int(request), spawn.Int(0))
}
