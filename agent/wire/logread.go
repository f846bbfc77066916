// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"time"
)

// LogName is the name of a process's log in the directory of logs.
func LogName(processID string) string { return processID + ".log" }

// ReadLogStart reads the record that a log of size bytes begins with, and returns where the
// first frame after it begins that is kept.
func ReadLogStart(r io.ReaderAt, size int64) (rec Record, first int64, err error) {
	in := NewReader(io.NewSectionReader(r, 0, size))
	t, p, err := in.Next()
	if err != nil {
		return rec, 0, err
	}
	if t != LogStart {
		return rec, 0, &FormatError{Reason: "a log does not begin with its start"}
	}
	f, err := ParseLog(t, p)
	if err != nil {
		return rec, 0, err
	}
	if err := Decode(f.Data, &rec); err != nil {
		return rec, 0, err
	}
	first = int64(HeaderLen + len(p))
	t, p, err = in.Next()
	if err != nil || t != LogFloor {
		return rec, first, nil
	}
	f, err = ParseLog(t, p)
	if err != nil || len(f.Data) != 8 {
		return rec, first, nil
	}
	after := first + int64(HeaderLen+len(p))
	if floor := int64(binary.BigEndian.Uint64(f.Data)); floor >= after && floor <= size {
		return rec, floor, nil
	}
	return rec, after, nil
}

// LogScan is what the frames of a log hold.
type LogScan struct {
	End            int64 // where the last whole frame ends
	LastSeq        int64 // of the last frame of output
	Stdout, Stderr int64 // bytes of output
	Last           time.Time
	Result         *Result // nil: the process's end is not in it
}

// ScanLog reads the frames of a log of size bytes, from first on and up to its torn tail.
func ScanLog(r io.ReaderAt, first, size int64) LogScan {
	s := LogScan{End: first}
	in := NewReader(bufio.NewReaderSize(io.NewSectionReader(r, first, size-first), MaxData))
	for {
		t, p, err := in.Next()
		if err != nil {
			return s
		}
		f, err := ParseLog(t, p)
		if err != nil {
			return s
		}
		s.Last = f.At
		switch t {
		case LogStdout:
			s.LastSeq, s.Stdout = f.Seq, s.Stdout+int64(len(f.Data))
		case LogStderr:
			s.LastSeq, s.Stderr = f.Seq, s.Stderr+int64(len(f.Data))
		case LogExit:
			res := new(Result)
			if Decode(f.Data, res) == nil {
				s.Result = res
			}
		}
		s.End += int64(HeaderLen + len(p))
	}
}

// CutOff is the result of a process whose log does not tell its end, as far as its frames
// show: what came last may be missing.
func (s *LogScan) CutOff(rec *Record) *Result {
	last := s.Last
	if last.Before(rec.Started) {
		last = rec.Started
	}
	return &Result{
		ExitCode: -1, Cause: CauseHost, Ended: last, DurationNS: int64(last.Sub(rec.Started)),
		CauseDetail: "the sandbox's first process ended under it; this is the last time that it was heard of",
		StdoutBytes: s.Stdout, StderrBytes: s.Stderr,
		StdoutTruncated: true, StderrTruncated: true, StdoutCut: CutAgent, StderrCut: CutAgent,
	}
}

// ErrNoLog is ReadLog's error for what is no log of that process.
var ErrNoLog = errors.New("no log of that process")

// ReadLog reads the record of a process that is not running off its log of size bytes, to the
// end, its result included.
func ReadLog(r io.ReaderAt, size int64, processID string) (Record, error) {
	rec, first, err := ReadLogStart(r, size)
	if err != nil {
		return rec, err
	}
	if rec.ID != processID {
		return rec, ErrNoLog
	}
	s := ScanLog(r, first, size)
	rec.State, rec.LastSeq, rec.Result = Exited, s.LastSeq, s.Result
	if rec.Result == nil {
		rec.Result = s.CutOff(&rec)
	}
	return rec, nil
}
