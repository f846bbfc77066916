// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// sealLen is the length of the frame that ends a log.
const sealLen = wire.LogHeaderLen + 8

func sealContent(exit int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(exit)) }

// storedLog is a finished log on disk.
type storedLog struct {
	fd     int
	rec    wire.Record
	first  int64 // where the frame after LogStart begins
	end    int64 // where the last whole frame of content ends
	size   int64
	sealed bool
}

func (l *storedLog) close() { _ = unix.Close(l.fd) }

// openLog reads the record off the log of a process that is not in memory. One
// that does not exist, or holds not even a whole LogStart, is fault.NotFound. A
// log without an end is that of a process that died with its agent.
func (s *Server) openLog(id string) (*storedLog, error) {
	if !validProcessID(id) {
		return nil, noProcess(id)
	}
	fd, err := unix.Openat(s.logDir, logName(id), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil, noProcess(id)
		}
		return nil, fault.Wrap(fault.Internal, err, "the log of process %s could not be opened", id)
	}
	l := &storedLog{fd: fd}
	if err := l.read(); err != nil || l.rec.ID != id {
		l.close()
		return nil, noProcess(id)
	}
	return l, nil
}

func (l *storedLog) read() error {
	var st unix.Stat_t
	if err := unix.Fstat(l.fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return unix.EINVAL
	}
	l.size = st.Size
	var err error
	if l.rec, l.first, err = wire.ReadLogStart(descriptor.File(l.fd), l.size); err != nil {
		return err
	}
	if l.readSealed() {
		return nil
	}
	l.scan()
	return nil
}

// readSealed finds the result through the last frame.
func (l *storedLog) readSealed() bool {
	at := l.size - sealLen
	if at < l.first {
		return false
	}
	f, next, err := l.frame(at)
	if err != nil || f.Type != wire.LogSeal || next != l.size || len(f.Data) != 8 {
		return false
	}
	exit, _, err := l.frame(int64(binary.BigEndian.Uint64(f.Data)))
	if err != nil || exit.Type != wire.LogExit {
		return false
	}
	res := new(wire.Result)
	if wire.Decode(exit.Data, res) != nil {
		return false
	}
	l.rec.State, l.rec.Result, l.rec.LastSeq = wire.Exited, res, f.Seq
	l.end, l.sealed = at, true
	return true
}

// scan reads the whole log, up to its torn tail.
func (l *storedLog) scan() {
	found := wire.ScanLog(descriptor.File(l.fd), l.first, l.size)
	l.end, l.rec.LastSeq = found.End, found.LastSeq
	l.rec.State, l.rec.Result = wire.Exited, found.Result
	if l.rec.Result == nil {
		l.rec.Result = found.CutOff(&l.rec)
	}
}

// frame reads the frame at off and checks it.
func (l *storedLog) frame(off int64) (wire.LogFrame, int64, error) {
	return readFrame(l.fd, off, l.size)
}

func readFrame(fd int, off, size int64) (f wire.LogFrame, next int64, err error) {
	if off < 0 || off >= size {
		return f, 0, io.EOF
	}
	t, n, err := peekFrame(fd, off)
	if err != nil {
		return f, 0, err
	}
	if off+int64(wire.HeaderLen+n) > size {
		return f, 0, io.ErrUnexpectedEOF
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(descriptor.File(fd), off+wire.HeaderLen, int64(n)), b); err != nil {
		return f, 0, err
	}
	f, err = wire.ParseLog(t, b)
	return f, off + int64(wire.HeaderLen+n), err
}

// peekFrame reads the header of the frame at off.
func peekFrame(fd int, off int64) (wire.Type, int, error) {
	var h [wire.HeaderLen]byte
	if _, err := io.ReadFull(io.NewSectionReader(descriptor.File(fd), off, wire.HeaderLen), h[:]); err != nil {
		return 0, 0, err
	}
	return frameHeader(h[:])
}

// frameHeader reads what every frame begins with.
func frameHeader(h []byte) (wire.Type, int, error) {
	t, n := wire.Type(h[0]), int(h[1])<<16|int(h[2])<<8|int(h[3])
	if t < wire.LogStart || t > wire.LogFloor || n > t.Limit() || n < wire.LogHeaderLen-wire.HeaderLen {
		return 0, 0, &wire.FormatError{Reason: "no frame of a log"}
	}
	return t, n, nil
}

// seek finds where the output after the frame numbered after begins, in a log
// whose frames from off to end are whole.
func seek(fd int, off, end, after int64) (int64, error) {
	if after == 0 {
		return off, nil
	}
	r := bufio.NewReaderSize(io.NewSectionReader(descriptor.File(fd), off, end-off), wire.MaxData)
	for off < end {
		h, err := r.Peek(wire.LogHeaderLen)
		if err != nil {
			return 0, err
		}
		t, n, err := frameHeader(h)
		if err != nil {
			return 0, err
		}
		if t == wire.LogStdout || t == wire.LogStderr {
			if int64(binary.BigEndian.Uint64(h[8:])) > after {
				return off, nil
			}
		}
		if _, err := r.Discard(wire.HeaderLen + n); err != nil {
			return 0, err
		}
		off += int64(wire.HeaderLen + n)
	}
	return off, nil
}

// seekTail is seek in the part of a log that is in memory.
func seekTail(tail []byte, after int64) int64 {
	r := wire.NewReader(bytes.NewReader(tail))
	var off int64
	for {
		t, p, err := r.Next()
		if err != nil {
			return off
		}
		if t == wire.LogStdout || t == wire.LogStderr {
			if f, err := wire.ParseLog(t, p); err == nil && f.Seq > after {
				return off
			}
		}
		off += int64(wire.HeaderLen + len(p))
	}
}

func noProcess(id string) error {
	return fault.New(fault.NotFound, "there is no process %q in this sandbox", message.Clip(id, 80)).
		WithRemedy("list the processes; finished ones are kept for a while only")
}

// validProcessID reports whether id is fit for the name of a log.
func validProcessID(id string) bool {
	if len(id) == 0 || len(id) > wire.MaxProcessID {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c != '-' || i == 0) {
			return false
		}
	}
	return true
}
