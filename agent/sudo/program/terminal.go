// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/sudo"
)

// terminal is the caller's, of which the command gets a new one: the kernel gives a terminal to one session alone,
// and the command is in another than its caller.
type terminal struct {
	fd     int // the caller's
	usual  unix.Termios
	raw    bool
	mu     sync.Mutex // guards raw
	master *os.File   // of the command's; nil: it has none
	out    chan struct{}
}

// openTerminal asks for a terminal where stdin is the one that controls the caller, who has it in the foreground.
func openTerminal(r *sudo.Request) *terminal {
	if r.Action != sudo.Run {
		return nil
	}
	t := &terminal{}
	usual, err := unix.IoctlGetTermios(t.fd, unix.TCGETS)
	if err != nil {
		return nil
	}
	front, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil || front != unix.Getpgrp() {
		return nil
	}
	size, err := unix.IoctlGetWinsize(t.fd, unix.TIOCGWINSZ)
	if err != nil {
		return nil
	}
	t.usual, r.Cols, r.Rows, r.Terminal = *usual, size.Col, size.Row, 1
	var in, other unix.Stat_t
	if unix.Fstat(t.fd, &in) != nil {
		return nil
	}
	for i := 1; i <= 2; i++ {
		if unix.Fstat(i, &other) == nil && other.Rdev == in.Rdev && other.Dev == in.Dev && other.Mode&unix.S_IFMT == unix.S_IFCHR {
			r.Terminal |= 1 << i
		}
	}
	return t
}

// begin passes on what is typed and what is printed.
func (t *terminal) begin(master *os.File) {
	t.master, t.out = master, make(chan struct{})
	_ = unix.IoctlSetTermios(int(master.Fd()), unix.TCSETS, &t.usual)
	raw := t.usual
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	t.mu.Lock()
	t.raw = unix.IoctlSetTermios(t.fd, unix.TCSETSW, &raw) == nil
	t.mu.Unlock()
	go t.typed() // ends with the process
	go t.printed()
}

func (t *terminal) typed() {
	var b [4096]byte
	for {
		n, err := unix.Read(t.fd, b[:])
		if err == unix.EINTR || err == unix.EAGAIN {
			if err == unix.EAGAIN {
				_, _ = unix.Poll([]unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLIN}}, -1)
			}
			continue
		}
		if err != nil || n <= 0 {
			// The terminal was hung up: its end tells the command so.
			_ = unix.Kill(os.Getpid(), unix.SIGHUP)
			return
		}
		if _, err := t.master.Write(b[:n]); err != nil {
			return
		}
	}
}

func (t *terminal) printed() {
	defer close(t.out)
	var b [16 << 10]byte
	for {
		n, err := t.master.Read(b[:])
		for at := 0; at < n; {
			w, err := unix.Write(t.fd, b[at:n])
			switch {
			case err == unix.EINTR:
			case err == unix.EAGAIN:
				_, _ = unix.Poll([]unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLOUT}}, -1)
			case err != nil:
				return
			default:
				at += w
			}
		}
		if err != nil {
			return
		}
	}
}

// resize gives the command's terminal the size of the caller's.
func (t *terminal) resize() {
	size, err := unix.IoctlGetWinsize(t.fd, unix.TIOCGWINSZ)
	if err == nil && t.master != nil {
		raw, err := t.master.SyscallConn()
		if err == nil {
			_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) })
		}
	}
}

// end prints what the command has written, and restores the caller's terminal. What still holds the command's
// terminal is not waited for long.
func (t *terminal) end() {
	if t == nil {
		return
	}
	if t.master != nil {
		select {
		case <-t.out:
		case <-time.After(200 * time.Millisecond):
		}
	}
	t.restore()
}

func (t *terminal) restore() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.raw {
		_ = unix.IoctlSetTermios(t.fd, unix.TCSETSF, &t.usual)
		t.raw = false
	}
}
