// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"fmt"
	"time"
)

// Transport carries the streams of one running kernel. Next is called by one
// goroutine at a time, beside which the other methods may be.
type Transport interface {
	// Next returns the next piece of output, each once and in order. It waits until ctx is
	// done; then it may be called again, and nothing is lost. At the end of the
	// kernel, and after all of its output, the error is io.EOF, for ever.
	Next(ctx context.Context) (Chunk, error)
	// Write writes to stdin, all of b or an error. It waits while the kernel does not read, until
	// ctx is done.
	Write(ctx context.Context, b []byte) error
	// Interrupt sends SIGINT to the kernel and to all that it has started, and returns
	// when it is sent.
	Interrupt(ctx context.Context) error
	// Exit is how the kernel ended, after Next has given io.EOF.
	Exit() Exit
}

// Chunk is one piece of output.
type Chunk struct {
	Seq    int64 // grows from chunk to chunk, over both streams
	Stderr bool  // else stdout
	Data   []byte
	At     time.Time // when the kernel wrote it; zero: not known
}

// Exit is how a kernel ended.
type Exit struct {
	Code   int    // 128 + the signal's number
	Signal string // "SIGKILL"; empty: it exited by itself
	Cause  string // what ended it, if that is known: "oom"
}

func (e Exit) String() string {
	s := fmt.Sprintf("exit code %d", e.Code)
	if e.Signal != "" {
		s = e.Signal
	}
	if e.Cause != "" {
		s += ", " + e.Cause
	}
	return s
}
