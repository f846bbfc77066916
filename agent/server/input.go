// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// input is a command's stdin that was given at once: a pipe with all of it, or a file
// that is stored; nil: nothing.
type input struct {
	f      *os.File
	room   int64 // what the file takes of the budget; 0: it is a pipe
	budget *budget
}

func (in *input) close() {
	if in.f != nil {
		_ = in.f.Close()
	}
	if in.room > 0 {
		in.budget.giveBack(in.room)
	}
	*in = input{}
}

// feeder brings stdin that is stored to a process, through a pipe: with the file itself the
// sandbox's root could write to it as much as it likes, outside of its disk's limit.
type feeder struct {
	in input
	to *os.File
}

// run ends when all is written, when nobody reads any more, or with stop.
func (f *feeder) run() {
	defer f.close()
	raw, err := f.to.SyscallConn()
	if err != nil {
		return
	}
	from, off := int(f.in.f.Fd()), int64(0)
	_ = raw.Write(func(to uintptr) bool {
		for {
			switch n, err := unix.Splice(from, &off, int(to), nil, 1<<20, unix.SPLICE_F_NONBLOCK); {
			case err == unix.EINTR:
			case err == unix.EAGAIN:
				return false
			case err != nil || n == 0:
				return true
			}
		}
	})
}

func (f *feeder) stop() { _ = f.to.SetWriteDeadline(longAgo) }

func (f *feeder) close() {
	_ = f.to.Close()
	f.in.close()
}

// smallInput surely fits in a pipe, also where the kernel has cut pipes down to one page.
const smallInput = 4096

// receiveStdin takes what was sent for stdin, in full. It waits in the buffer of
// a pipe or in a file without a name: never in our memory, and for nobody.
func (s *Server) receiveStdin(c *call.Conn, id string, st *wire.Start) (in input, err error) {
	if st.StdinSize == 0 {
		return in, nil
	}
	var w *os.File
	if st.StdinSize <= smallInput {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			return in, fault.Wrap(fault.Exhausted, err, "no pipe could be made for stdin")
		}
		in.f, w = os.NewFile(uintptr(fds[0]), "stdin"), os.NewFile(uintptr(fds[1]), "stdin")
	} else {
		in.budget = &s.budget
		var ok bool
		if in.room, ok = s.budget.grow(0, blocks(st.StdinSize)); !ok {
			return input{}, logsFull()
		}
		if in.f, w, err = s.inputFile(id); err != nil {
			in.close()
			return in, err
		}
	}
	defer w.Close()
	defer func() {
		if err != nil {
			in.close()
		}
	}()
	for left := st.StdinSize; left > 0; {
		b, err := c.Data()
		if err != nil {
			return in, err
		}
		if b == nil || int64(len(b)) > left {
			return in, fault.New(fault.Malformed, "stdin was said to have %d bytes, and has not", st.StdinSize)
		}
		if _, err := w.Write(b); err != nil {
			return in, message.NoSpace(err, "stdin of %d bytes could not be stored", st.StdinSize)
		}
		left -= int64(len(b))
	}
	return in, nil
}

// inputFile makes a file without a name, open for reading and apart for writing.
func (s *Server) inputFile(id string) (r, w *os.File, err error) {
	name := id + ".stdin"
	fd, err := unix.Openat(s.logDir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		if err == unix.EEXIST {
			return nil, nil, processExists(id)
		}
		return nil, nil, message.NoSpace(err, "stdin could not be stored")
	}
	defer func() { _ = unix.Unlinkat(s.logDir, name, 0) }()
	rd, err := unix.Openat(s.logDir, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		_ = unix.Close(fd)
		return nil, nil, fault.Wrap(fault.Internal, err, "stdin could not be stored")
	}
	return os.NewFile(uintptr(rd), "stdin"), os.NewFile(uintptr(fd), "stdin"), nil
}
