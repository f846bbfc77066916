// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package languages

import (
	"context"
	"io"
	"sync"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// stream is the standard input and output of a process, as package lsp needs them. What it says on its standard error is kept
// for a message.
type stream struct {
	process *engine.Background
	ctx     context.Context // ends reading and writing
	cancel  context.CancelFunc
	rest    []byte

	mu   sync.Mutex
	said []byte
}

func newStream(ctx context.Context, p *engine.Background) *stream {
	s := &stream{process: p}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return s
}

// Read reads what the process wrote. It is for one goroutine.
func (s *stream) Read(b []byte) (int, error) {
	for len(s.rest) == 0 {
		fr, err := s.process.Next(s.ctx)
		if err != nil {
			return 0, err
		}
		if s.process.Gaps() > 0 {
			return 0, fault.New(fault.Unavailable, "some of what it said was lost")
		}
		if fr.Stream == sandbox.Stderr {
			s.hear(fr.Data)
			continue
		}
		s.rest = fr.Data
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *stream) hear(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, b...)
	s.said = s.said[max(0, len(s.said)-maxSaid):]
}

// words are the last that the process said on its standard error, in one line.
func (s *stream) words() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return oneLine(s.said)
}

func (s *stream) Write(b []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, io.ErrClosedPipe
	}
	if err := s.process.Write(s.ctx, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close ends both. The process does not notice.
func (s *stream) Close() error {
	s.cancel()
	return nil
}
