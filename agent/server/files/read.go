// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"io"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/server/dirs"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// openRegular opens a regular file for its data. It looks before it opens, as
// opening a device or a fifo may do something, and again after, as what
// the name leads to may have been changed in between. It runs within Do.
func (s *Service) openRegular(p string, flags int) (fd int, st unix.Stat_t, err error) {
	look, err := s.Open(p, unix.O_PATH)
	if err != nil {
		return -1, st, err
	}
	err = checkRegular(look, p, &st)
	_ = unix.Close(look)
	if err != nil {
		return -1, st, err
	}
	fd, err = s.Open(p, flags|unix.O_NONBLOCK)
	if err != nil {
		return -1, st, err
	}
	if err := checkRegular(fd, p, &st); err != nil {
		_ = unix.Close(fd)
		return -1, st, err
	}
	return fd, st, nil
}

// checkRegular refuses what is not a regular file on real storage.
func checkRegular(fd int, p string, st *unix.Stat_t) error {
	if err := unix.Fstat(fd, st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return dirs.CheckStorage(fd)
	case unix.S_IFDIR:
		return unix.EISDIR
	}
	return fault.InvalidField("path", "%q is %s; only regular files have content", message.Clip(shown(p), 400), kind(st.Mode))
}

// Read sends a file, or a range of it.
func (s *Service) Read(c *call.Conn, req *wire.Request) error {
	v, err := s.o.View(req.User, req.AsRoot)
	if err != nil {
		return err
	}
	p, err := s.Absolute("path", req.Path)
	if err != nil {
		return err
	}
	if req.Offset < 0 {
		return fault.InvalidField("offset", "%d is negative", req.Offset)
	}
	var fd int
	var st unix.Stat_t
	v.Do(func() { fd, st, err = s.openRegular(p, unix.O_RDONLY) })
	if err != nil {
		return fileFault(v, "read", p, err)
	}
	defer unix.Close(fd)
	version := ""
	if req.Version {
		// Before the bytes: what changes while they are read gives the file another one.
		if version, err = stableVersion(&st, func(st *unix.Stat_t) error { return unix.Fstat(fd, st) }); err != nil {
			return fileFault(v, "read", p, err)
		}
	}
	fi := describe(baseOf(p), &st)
	fi.Path, fi.Version = shown(p), version
	buf := s.o.Buffers.Get()
	defer s.o.Buffers.Put(buf)
	return s.sendRange(c, fi, fd, buf[:], req.Offset, req.Length)
}

// sendRange sends the Reply, the bytes, and Done, in as few writes as they fit
// in. What is appended to the file meanwhile is sent, too, if no length bounds it.
func (s *Service) sendRange(c *call.Conn, fi wire.FileInfo, fd int, buf []byte, off, length int64) error {
	head, err := wire.AppendJSON(nil, wire.Reply, fi)
	if err != nil {
		return err
	}
	at := 0 // in buf: what waits to be written
	if len(head) < len(buf)/2 {
		at = copy(buf, head)
	} else if _, err := c.Write(head); err != nil {
		return err
	}
	for left := length; length <= 0 || left > 0; {
		room := buf[at+wire.HeaderLen : len(buf)-wire.HeaderLen]
		if len(room) > wire.MaxData {
			room = room[:wire.MaxData]
		}
		if length > 0 && int64(len(room)) > left {
			room = room[:left]
		}
		n, err := descriptor.File(fd).ReadAt(room, off)
		if n > 0 {
			wire.PutHeader(buf[at:], wire.Data, n)
			at += wire.HeaderLen + n
			off += int64(n)
			left -= int64(n)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			if _, werr := c.Write(buf[:at]); werr != nil {
				return werr
			}
			return fault.Wrap(fault.Internal, err, "reading %q failed after %d bytes: %s", fi.Path, off, message.Of(err))
		}
		if _, err := c.Write(buf[:at]); err != nil {
			return err
		}
		at = 0
	}
	wire.PutHeader(buf[at:], wire.Done, 0)
	_, err = c.Write(buf[:at+wire.HeaderLen])
	return err
}
