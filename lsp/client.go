// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"sandpit.dev/fault"
)

// Client speaks to one server. All its methods but Run are safe for concurrent use; they work while Run runs.
type Client struct {
	stream  io.ReadWriteCloser
	out     chan []byte // to the server; who sends waits for its turn
	replies chan []byte // likewise, of whom nobody waits for
	done    chan struct{}

	mu      sync.Mutex
	last    int64 // id of a request
	waiting map[int64]chan<- message
	root    string // URI of the project
	err     error  // why done is closed
}

// Bounds of what a client is at.
const (
	maxWaiting = 64 // requests that are not answered
	maxReplies = 64 // answers that the server did not read
)

// ErrClosed is why a client ended that was told to.
var ErrClosed = errors.New("it was ended")

// New returns a client of the server at the other end of a stream. Closing the stream ends reading from it and writing to it.
func New(stream io.ReadWriteCloser) *Client {
	return &Client{stream: stream, out: make(chan []byte), replies: make(chan []byte, maxReplies), done: make(chan struct{}), waiting: make(map[int64]chan<- message)}
}

// Run carries messages until the stream ends, the server breaks the protocol, Close is called, or ctx is done, and returns why. It
// closes the stream. It is called once.
func (c *Client) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { c.end(context.Cause(ctx)) })
	defer stop()
	var writer sync.WaitGroup
	writer.Go(c.write)
	c.end(c.read())
	writer.Wait()
	return c.ended()
}

// Close ends the client. It may be called more than once, and without Run.
func (c *Client) Close() { c.end(ErrClosed) }

// Done is closed when the client has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

func (c *Client) end(why error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = why
		close(c.done)
	}
	c.mu.Unlock()
	if first {
		_ = c.stream.Close() // nothing more is written
	}
}

func (c *Client) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Client) read() error {
	r := bufio.NewReaderSize(c.stream, maxHeader)
	for {
		b, err := readMessage(r)
		if err != nil {
			return err
		}
		if err := c.receive(b); err != nil {
			return err
		}
	}
}

// lastWords is how long a server that takes nothing more has its last output read.
const lastWords = time.Second

func (c *Client) write() {
	for {
		var b []byte
		select {
		case b = <-c.replies:
		case b = <-c.out:
		case <-c.done:
			return
		}
		if _, err := c.stream.Write(b); err != nil {
			select { // the process may have ended, and what it said last is still to be read
			case <-c.done:
			case <-time.After(lastWords):
				c.end(err)
			}
			return
		}
	}
}

// gone is the error of a call to a server that has ended, or was given up.
func (c *Client) gone(method string) error {
	err := c.ended()
	return fault.Wrap(fault.Unavailable, err, "the language server did not answer %s: %s", method, clip(err.Error(), maxSaid)).
		WithRemedy("start it again")
}

// late is the error of a call whose context is done.
func late(ctx context.Context, method string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Wrap(fault.Timeout, ctx.Err(), "the language server has not answered %s in time", method).
			WithRemedy("ask again when it has read the project, or stop it and start it again")
	}
	return context.Cause(ctx)
}

// send has a message written.
func (c *Client) send(ctx context.Context, method string, m any) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	select {
	case c.out <- frame(b):
		return nil
	case <-c.done:
		return c.gone(method)
	case <-ctx.Done():
		return late(ctx, method)
	}
}

// notify sends a notification to the server.
func (c *Client) notify(ctx context.Context, method string, params any) error {
	return c.send(ctx, method, request{Version: version, Method: method, Params: params})
}

// call asks the server, and returns what it answers.
func (c *Client) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	got := make(chan message, 1)
	id, err := c.expect(got)
	if err != nil {
		return nil, err
	}
	defer c.forget(id)
	if err := c.send(ctx, method, request{version, id, method, params}); err != nil {
		return nil, err
	}
	select {
	case m := <-got:
		if m.Error != nil {
			return nil, refused(method, m.Error)
		}
		return m.Result, nil
	case <-c.done:
		return nil, c.gone(method)
	case <-ctx.Done():
		c.cancel(id)
		return nil, late(ctx, method)
	}
}

// expect has the answer to a request go to a channel, and returns the request's id.
func (c *Client) expect(to chan<- message) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) >= maxWaiting {
		return 0, fault.New(fault.Exhausted, "the language server has %d requests to answer, the most that it gets", maxWaiting).
			WithRemedy("ask again in a moment")
	}
	c.last++
	c.waiting[c.last] = to
	return c.last, nil
}

func (c *Client) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// cancel notifies the server that nobody waits for an answer, if that needs no waiting.
func (c *Client) cancel(id int64) {
	b, err := json.Marshal(request{Version: version, Method: "$/cancelRequest", Params: map[string]int64{"id": id}})
	if err != nil {
		return
	}
	select {
	case c.replies <- frame(b):
	default:
	}
}

// unread is the error of an answer that is not what it should be.
func unread(method string, err error) error {
	return fault.Wrap(fault.Unavailable, err, "what the language server answered to %s cannot be read: %s", method, clip(fmt.Sprint(err), maxSaid)).
		WithRemedy("ask again, or stop it and start it again")
}
