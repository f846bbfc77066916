// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Stdio takes this process's standard input and output, as one connection. What is opened later gets neither of
// their numbers: both are /dev/null from now on.
func Stdio() (net.Conn, error) {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	var fds [2]*os.File
	for fd := range fds {
		took, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, unix.Stderr+1)
		if err == nil {
			err = unix.Dup3(int(null.Fd()), fd, 0)
		}
		if err != nil {
			return nil, os.NewSyscallError("take stdin and stdout", err)
		}
		_ = unix.SetNonblock(took, true) // so that Go's poller takes it, and reads can be ended
		fds[fd] = os.NewFile(uintptr(took), "stdio")
	}
	return &pair{in: fds[0], out: fds[1]}, nil
}

// pair is a connection of two files.
type pair struct{ in, out *os.File }

func (p *pair) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p *pair) Write(b []byte) (int, error) { return p.out.Write(b) }
func (p *pair) Close() error                { return errors.Join(p.in.Close(), p.out.Close()) }

func (p *pair) LocalAddr() net.Addr  { return stdio{} }
func (p *pair) RemoteAddr() net.Addr { return stdio{} }

func (p *pair) SetDeadline(t time.Time) error {
	return errors.Join(p.SetReadDeadline(t), p.SetWriteDeadline(t))
}
func (p *pair) SetReadDeadline(t time.Time) error  { return deadline(p.in.SetReadDeadline(t)) }
func (p *pair) SetWriteDeadline(t time.Time) error { return deadline(p.out.SetWriteDeadline(t)) }

// deadline passes over a file that has none: a plain file answers at once.
func deadline(err error) error {
	if errors.Is(err, os.ErrNoDeadline) {
		return nil
	}
	return err
}

// stdio is the address of a pair.
type stdio struct{}

func (stdio) Network() string { return "stdio" }
func (stdio) String() string  { return "stdio" }
