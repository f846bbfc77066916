// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"io"
	"net/http"
)

// AnswerLog answers with text as it is written: write gets where to, and what hands it on to the client. The head is sent with
// the first byte, so that an error before that is told by its status.
func (c *Call) AnswerLog(ctx context.Context, write func(ctx context.Context, w io.Writer, flush func() error) error) error {
	ctx, done := c.Bound(ctx)
	defer done()
	l := &logAnswer{c: c}
	defer l.close()
	err := write(ctx, l, l.flush)
	if err != nil && l.out == nil {
		return Cause(ctx, err)
	}
	if err != nil {
		return err
	}
	l.begin() // also where it is empty
	return nil
}

type logAnswer struct {
	c   *Call
	out *StallWriter
}

func (l *logAnswer) begin() {
	if l.out != nil {
		return
	}
	h := l.c.W.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff") // what a build wrote is not for browsers to guess at
	h.Set("Cache-Control", "no-store")
	l.c.W.WriteHeader(http.StatusOK)
	l.out = l.c.StallWriter()
}

func (l *logAnswer) Write(p []byte) (int, error) {
	l.begin()
	if l.c.R.Method == http.MethodHead {
		return len(p), nil
	}
	return l.out.Write(p)
}

func (l *logAnswer) flush() error {
	if l.out == nil {
		return nil
	}
	return l.out.Flush()
}

func (l *logAnswer) close() {
	if l.out != nil {
		l.out.Close()
	}
}
