// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"sandpit.dev/fault"
)

// lines reads an answer of JSON documents, one a line. It is for one goroutine.
type lines struct {
	c       *Client
	ctx     context.Context // the caller's
	limit   context.Context // ends with that, and when nothing came for too long
	all     io.Reader       // the answer, which scan reads, or the caller
	scan    *bufio.Scanner
	body    io.Closer
	cancel  context.CancelFunc
	quiet   *time.Timer // ends it when nothing comes; nil: it may be quiet for ever
	closing sync.Once
}

// stream sends a request whose answer is read as it comes. within bounds the wait for its head.
// quiet bounds, where it is not zero, the time in which no byte goes either way, before that as well.
func (c *Client) stream(ctx context.Context, r request, quiet time.Duration) (*lines, error) {
	limit, cancel := context.WithCancelCause(ctx)
	s := &lines{c: c, ctx: ctx, limit: limit, cancel: func() { cancel(context.Canceled) }}
	bound := r.within
	if quiet > 0 {
		bound = quiet
	}
	head := time.AfterFunc(bound, func() { cancel(errTimeLimit) })
	if quiet > 0 {
		s.quiet = head
		if r.body != nil {
			r.body = &touching{r.body, head, quiet}
		}
	}
	resp, err := c.do(limit, r)
	if err == nil && quiet == 0 && !head.Stop() {
		_ = resp.Body.Close()
		err = errTimeLimit
	}
	if err != nil {
		head.Stop()
		err = c.failed(ctx, bound, cmp.Or(context.Cause(limit), err))
		s.cancel()
		return nil, err
	}
	s.body = resp.Body
	if resp.StatusCode >= 300 {
		defer s.close()
		return nil, c.refused(resp)
	}
	var body io.Reader = resp.Body
	if quiet > 0 {
		body = &touching{body, head, quiet}
	}
	s.all, s.scan = body, bufio.NewScanner(body)
	s.scan.Buffer(nil, maxLine)
	return s, nil
}

// touching puts a timer off with each read.
type touching struct {
	io.Reader
	timer *time.Timer
	by    time.Duration
}

func (t *touching) Read(b []byte) (int, error) {
	n, err := t.Reader.Read(b)
	if n > 0 {
		t.timer.Reset(t.by)
	}
	return n, err
}

// next reads the next document into out; io.EOF after the last.
func (s *lines) next(out any) error {
	for s.scan.Scan() {
		line := bytes.TrimSpace(s.scan.Bytes())
		if len(line) == 0 {
			continue
		}
		err := json.Unmarshal(line, out)
		if err == nil {
			return nil
		}
		if s.scan.Err() != nil {
			break // the rest of it did not come
		}
		return s.c.noEngine(err, "sends what is no JSON of its API")
	}
	switch err := s.scan.Err(); {
	case err == nil:
		return io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return fault.New(fault.Unavailable, "the Engine at %s sends a line of more than %d bytes", s.c.Host(), maxLine)
	default:
		return s.c.failed(s.ctx, quietTimeout, cmp.Or(context.Cause(s.limit), err))
	}
}

// close ends the stream. Calling it twice is fine, and so is calling it while next waits, which then fails.
func (s *lines) close() {
	s.closing.Do(func() {
		if s.quiet != nil {
			s.quiet.Stop()
		}
		s.cancel()
		_ = s.body.Close()
	})
}

// progress is one document of an answer about work that takes a while.
type progress struct {
	Status         string
	Stream         string
	ID             string
	ProgressDetail struct{ Current, Total int64 }
	Error          string
	ErrorDetail    struct {
		Code    int
		Message string
	}
}

// work sends a request whose answer tells of progress to its end, and tells each.
func (c *Client) work(ctx context.Context, r request, tell func(progress)) error {
	s, err := c.stream(ctx, r, quietTimeout)
	if err != nil {
		return err
	}
	defer s.close()
	for {
		var p progress
		switch err := s.next(&p); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case p.Error != "" || p.ErrorDetail.Message != "":
			words := p.ErrorDetail.Message
			if words == "" {
				words = p.Error
			}
			status := p.ErrorDetail.Code
			if status == 0 {
				status = http.StatusInternalServerError
			}
			return c.said(status, words)
		}
		if tell != nil {
			tell(p)
		}
	}
}
