// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"golang.org/x/sys/unix"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// openTerminal makes a pseudo terminal. The command's end is opened through
// ours, not by a name that the sandbox could have put something else under.
func (sp *spawn) openTerminal(t *wire.Terminal) error {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fault.Wrap(fault.Exhausted, err, "no terminal could be made")
	}
	sp.master = master
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return fault.Wrap(fault.Unsupported, err, "/dev/ptmx is no terminal multiplexer here")
	}
	// TIOCGPTPEER takes its flags as the argument itself.
	slave, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return fault.Wrap(fault.Internal, errno, "no terminal could be made")
	}
	sp.child[0] = int(slave)
	for i := 1; i <= 2; i++ {
		if sp.child[i], err = unix.FcntlInt(slave, unix.F_DUPFD_CLOEXEC, 3); err != nil {
			return fault.Wrap(fault.Exhausted, err, "no terminal could be made: the sandbox has too many open files")
		}
	}
	if err := setSize(master, t.Cols, t.Rows); err != nil {
		return fault.Wrap(fault.Internal, err, "the terminal's size could not be set")
	}
	return nil
}

func setSize(fd int, cols, rows uint16) error {
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: cols, Row: rows})
}

// resize tells a process's terminal its new size.
func (s *Server) resize(id string, cols, rows uint16) error {
	p, err := s.running(id)
	if err != nil {
		return err
	}
	if p.terminal == nil {
		return fault.New(fault.State, "process %s has no terminal", id)
	}
	if err := checkSize(cols, rows); err != nil {
		return err
	}
	raw, err := p.terminal.SyscallConn()
	if err == nil {
		var failed error
		err = raw.Control(func(fd uintptr) { failed = setSize(int(fd), cols, rows) })
		if err == nil {
			err = failed
		}
	}
	if err != nil {
		return fault.Wrap(fault.State, err, "the terminal of process %s is closed", id)
	}
	return nil
}
