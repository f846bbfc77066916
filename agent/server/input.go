// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// input is a command's stdin that was given at once: an open file, at its
// beginning; nil: nothing.
type input struct{ f *os.File }

func (in input) close() {
	if in.f != nil {
		_ = in.f.Close()
	}
}

// smallInput surely fits in a pipe, also where the kernel has cut pipes down to one page.
const smallInput = 4096

// receiveStdin takes what was sent for stdin, in full. It waits in the buffer of
// a pipe or in a file without a name: never in our memory, and for nobody.
func (s *Server) receiveStdin(c *conn, id string, st *wire.Start) (in input, err error) {
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
	} else if in.f, w, err = s.inputFile(id); err != nil {
		return in, err
	}
	defer w.Close()
	defer func() {
		if err != nil {
			in.close()
			in.f = nil
		}
	}()
	for left := st.StdinSize; left > 0; {
		b, err := c.data()
		if err != nil {
			return in, err
		}
		if b == nil || int64(len(b)) > left {
			return in, fault.New(fault.Malformed, "stdin was said to have %d bytes, and has not", st.StdinSize)
		}
		if _, err := w.Write(b); err != nil {
			return in, noSpace(err, "stdin of %d bytes could not be stored", st.StdinSize)
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
		return nil, nil, noSpace(err, "stdin could not be stored")
	}
	defer func() { _ = unix.Unlinkat(s.logDir, name, 0) }()
	rd, err := unix.Openat(s.logDir, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		_ = unix.Close(fd)
		return nil, nil, fault.Wrap(fault.Internal, err, "stdin could not be stored")
	}
	return os.NewFile(uintptr(rd), "stdin"), os.NewFile(uintptr(fd), "stdin"), nil
}
