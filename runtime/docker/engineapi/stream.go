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
	r       request
	ctx     context.Context // the caller's
	limit   context.Context // ends with that, and when nothing came for too long
	all     io.Reader       // the answer, which scan reads, or the caller
	scan    *bufio.Scanner
	body    io.Closer
	cancel  context.CancelFunc
	quiet   Timer // ends it when nothing comes, or when it has lasted long enough
	closing sync.Once
}

// ErrOver is the end of a stream of events that lasted as long as one may: who wants more listens again. It is how a
// stream is noticed that lost its Engine and does not say so.
var ErrOver = errors.New("the stream has lasted long enough")

// stream sends a request whose answer is read as it comes. Where quiet is not zero it bounds the time in which no byte goes
// either way, before the head of the answer as well. Else within bounds the wait for the head, and last the whole stream,
// which then ends with ErrOver.
func (c *Client) stream(ctx context.Context, r request, quiet, last time.Duration) (*lines, error) {
	limit, cancel := context.WithCancelCause(ctx)
	if quiet > 0 {
		r.within = quiet
	}
	s := &lines{c: c, r: r, ctx: ctx, limit: limit, cancel: func() { cancel(context.Canceled) }}
	s.quiet = afterFunc(c.clock, r.within, func() { cancel(errTimeLimit) })
	if quiet > 0 && r.body != nil {
		r.body = &touching{r.body, s.quiet, quiet}
	}
	resp, err := c.do(limit, r)
	if err != nil {
		s.quiet.Stop()
		err = c.failed(ctx, r, cmp.Or(context.Cause(limit), err))
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
		body = &touching{body, s.quiet, quiet}
	} else {
		if !s.quiet.Stop() {
			defer s.close()
			return nil, c.failed(ctx, r, errTimeLimit)
		}
		s.quiet = afterFunc(c.clock, last, func() { cancel(ErrOver) })
	}
	s.all, s.scan = body, bufio.NewScanner(body)
	s.scan.Buffer(nil, maxLine)
	return s, nil
}

// touching puts a timer off with each read.
type touching struct {
	io.Reader
	timer Timer
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
		cause := cmp.Or(context.Cause(s.limit), err)
		if errors.Is(cause, ErrOver) && s.ctx.Err() == nil {
			return ErrOver
		}
		return s.c.failed(s.ctx, s.r, cause)
	}
}

// close ends the stream. Calling it twice is fine, and so is calling it while next waits, which then fails.
func (s *lines) close() {
	s.closing.Do(func() {
		s.quiet.Stop()
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
	s, err := c.stream(ctx, r, quietTimeout, 0)
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
