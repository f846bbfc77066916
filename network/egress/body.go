// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"sandpit.dev/redact/deep"
)

// defaultHold is [Options.Hold] where that is zero.
const defaultHold = 50 * time.Millisecond

// maskedBody is a body whose values are masked.
type maskedBody struct {
	from  io.Reader
	under io.Closer
	ended func() // once, when from has; may be nil
	share *Share
	hold  time.Duration // how long what may be the beginning of a value is kept back

	mask  *deep.Stream
	in    []byte
	clear []byte // of mask's, not read yet
	err   error
	next  chan got // what a read that is under way will return; nil: no read is

	mu     sync.Mutex
	closed bool
	reads  sync.WaitGroup
}

type got struct {
	n   int
	err error
}

const readSize = 32 << 10

func newMaskedBody(values *deep.Set, share *Share, hold time.Duration, from io.Reader, under io.Closer, ended func()) *maskedBody {
	if hold == 0 {
		hold = defaultHold
	}
	return &maskedBody{hold: hold, from: from, under: under, ended: ended, share: share, mask: values.Stream(), in: make([]byte, readSize)}
}

// Read is for one reader at a time.
func (r *maskedBody) Read(p []byte) (int, error) {
	for len(r.clear) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if !r.mask.Pending() && r.next == nil {
			n, err := r.from.Read(r.in)
			r.take(got{n, err})
			continue
		}
		if err := r.begin(); err != nil {
			return 0, err
		}
		if !r.mask.Pending() {
			r.take(<-r.next)
			continue
		}
		late := time.NewTimer(r.hold)
		select {
		case g := <-r.next:
			r.take(g)
		case <-late.C:
			r.share.look(func() { r.clear = r.mask.Release() })
			if len(r.clear) == 0 {
				r.take(<-r.next)
			}
		}
		late.Stop()
	}
	n := copy(p, r.clear)
	r.clear = r.clear[n:]
	return n, nil
}

// begin begins a read, unless one is under way.
func (r *maskedBody) begin() error {
	if r.next != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return net.ErrClosed
	}
	next := make(chan got, 1)
	r.next = next
	r.reads.Go(func() {
		n, err := r.from.Read(r.in)
		next <- got{n, err}
	})
	return nil
}

func (r *maskedBody) take(g got) {
	r.next = nil
	r.share.look(func() { r.clear = r.mask.Push(r.in[:g.n]) })
	if g.err == nil {
		return
	}
	if r.err = g.err; !errors.Is(g.err, io.EOF) {
		return
	}
	if r.ended != nil {
		r.ended()
	}
	r.share.look(func() { r.clear = append(append([]byte(nil), r.clear...), r.mask.End()...) })
}

// Close ends a read that is under way, and waits for it.
func (r *maskedBody) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	err := r.under.Close()
	r.reads.Wait()
	return err
}

// maskedConn is a connection whose answers are masked.
type maskedConn struct {
	*maskedBody
	io.Writer
}

var errEncoding = errors.New("the answer is in an encoding that values cannot be looked for in")

// decoded gives a response's body as it is without its content encoding. An encoding
// that is not known here is errEncoding.
func decoded(res *http.Response) (io.Reader, error) {
	var codings []string
	for _, line := range res.Header.Values("Content-Encoding") {
		for c := range strings.SplitSeq(line, ",") {
			if c = strings.ToLower(strings.TrimSpace(c)); c != "" && c != "identity" {
				codings = append(codings, c)
			}
		}
	}
	if len(codings) == 0 {
		return res.Body, nil
	}
	if len(codings) > 1 {
		return nil, errEncoding
	}
	out := &inflated{from: bufio.NewReader(res.Body)}
	switch codings[0] {
	case "gzip", "x-gzip":
		out.open = func(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) }
	case "deflate":
		out.open = openDeflate
	default:
		return nil, errEncoding
	}
	res.Header.Del("Content-Encoding")
	res.Header.Del("Content-Length")
	res.ContentLength = -1
	return out, nil
}

// inflated opens what it reads from at the first read, since that may wait, and reads it to its
// end, where trailers are.
type inflated struct {
	from *bufio.Reader
	open func(*bufio.Reader) (io.Reader, error)
	r    io.Reader
}

func (i *inflated) Read(p []byte) (int, error) {
	if i.r == nil {
		if _, err := i.from.Peek(1); err != nil {
			return 0, err // an empty body is empty in any encoding
		}
		r, err := i.open(i.from)
		if err != nil {
			return 0, unexpected(err)
		}
		i.r = r
	}
	n, err := i.r.Read(p)
	if errors.Is(err, io.EOF) {
		if _, bad := io.Copy(io.Discard, i.from); bad != nil {
			return n, bad
		}
	}
	return n, err
}

// openDeflate reads zlib, and what some servers send by that name without its frame.
func openDeflate(r *bufio.Reader) (io.Reader, error) {
	head, err := r.Peek(2)
	if err != nil {
		return nil, err
	}
	const deflate, check = 8, 31
	if head[0]&0x0f == deflate && (int(head[0])<<8|int(head[1]))%check == 0 {
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
