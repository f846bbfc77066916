// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// Bounds of repeating a request whose answer breaks off.
const (
	maxBroken = 4           // answers in a row
	steady    = time.Second // an answer that went on for so long is in no row
)

type keyOfContext struct{}

// WithIdempotencyKey returns a context for one request that makes or begins something, which is
// sent with this key: 1 to 255 printable characters of ASCII. A program that ends before it has
// the answer can send the same request again with the same key within 24 hours, and gets the
// answer of the first. Without it the client makes a random key for each such request, and
// repeats the request by it if the connection breaks.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOfContext{}, key)
}

// lost is an answer that broke off: the request is repeated.
type lost struct{ error }

func (l lost) Unwrap() error { return l.error }

// repeat sends a request that makes or begins something with an idempotency key, until read has
// read the whole answer, or for as long as [Patience] without one. It does not repeat a request
// that the server refused, or that has reached no server.
func (c *Client) repeat(ctx context.Context, r request, read func(*http.Response) error) error {
	header := r.header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	key, ok := ctx.Value(keyOfContext{}).(string)
	if !ok {
		key = rand.Text()
	}
	header.Set(v1.IdempotencyKey, key)
	r.header = header
	tries, broken := c.retry(), 0
	for sent := false; ; {
		if r.resume != nil {
			r.resume(header)
		}
		resp, answered, err := c.send(ctx, r)
		if err == nil {
			since := time.Now()
			err = read(resp)
			_ = resp.Body.Close() // all that matters was read
			_, broke := errors.AsType[lost](err)
			if answered = !broke; broke {
				if broken++; time.Since(since) > steady {
					tries.worked()
					broken = 0
				}
			}
		} else if !answered { // the server has gone, and did not only break off
			broken = 0
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return unwrapLost(err)
		case sent && atWork(err): // by us, and the server has not seen yet that we are gone
			if err := pause(ctx, fault.As(err).Retry); err != nil {
				return err
			}
			continue
		case !sent && (answered || neverSent(err)), broken > maxBroken:
			return unwrapLost(err)
		}
		sent = true
		if err := tries.again(ctx, unwrapLost(err)); err != nil {
			return err
		}
	}
}

func unwrapLost(err error) error {
	if l, ok := errors.AsType[lost](err); ok {
		return l.error
	}
	return err
}

// atWork reports whether the server is still serving the same request.
func atWork(err error) bool { return fault.Is(err, fault.Conflict) && fault.As(err).Retry > 0 }

// neverSent reports whether a request cannot have reached a server.
func neverSent(err error) bool {
	return unreachable(err) || untrusted(err) || !fault.Is(err, fault.Unavailable)
}

// untrusted reports whether the server's certificate is not trusted.
func untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// unreachable reports whether no connection to a server could be made.
func unreachable(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// answers records that a server answers, with success or not.
func (c *Client) answers() {
	if !c.reached.Load() {
		c.reached.Store(true)
	}
	if c.waiting.Load() {
		c.waiting.Store(false)
	}
}

// tellWaiting reports that no answer comes, once until one does.
func (c *Client) tellWaiting(err error, until time.Time) {
	if c.onWait != nil && c.waiting.CompareAndSwap(false, true) {
		c.onWait(err, until)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin sends a request that makes or begins something, and reads the answer into out.
func (c *Client) begin(ctx context.Context, r request, out any) (status int, err error) {
	err = c.repeat(ctx, r, func(resp *http.Response) error {
		status = resp.StatusCode
		return c.decode(ctx, r, resp.Body, out)
	})
	if err != nil {
		return 0, err
	}
	return status, nil
}

// drain reads what is left of an answer, so that the connection can be used again.
func drain(r io.Reader) { _, _ = io.Copy(io.Discard, io.LimitReader(r, 64<<10)) }
