// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/coder/websocket"

	v1 "sandpit.dev/api/v1"
)

// FollowOptions select the output of a process. The zero value selects all of it to the process's
// end.
type FollowOptions struct {
	Cursor int64 // what comes after the frame of this number
	Recent int64 // without a cursor: of what there is already, about the last so many bytes; zero: all
	Once   bool  // only what there is by now
}

// Output is one item of a followed process's output: a frame, or one of the others.
type Output struct {
	Frame
	Gap  *v1.OutputGap // output is missing here
	Exit *v1.Process   // the process has ended; the last one
}

// Follow returns the output of a process: every frame once and in order, then its end. It
// reconnects after a broken connection or a restart of the server, resumes after the last frame,
// and fails after a minute without an answer. The sequence ends after an error. A slow loop
// blocks nothing: the process's log keeps its output.
func (p *Process) Follow(ctx context.Context, o FollowOptions) iter.Seq2[Output, error] {
	return func(yield func(Output, error) bool) {
		f := &following{p: p, cursor: o.Cursor, recent: o.Recent, once: o.Once, yield: yield}
		r := p.c.retry()
		for {
			err := f.connect(ctx, &r)
			switch {
			case f.over:
				return
			case err == nil:
				continue
			}
			if err := r.again(ctx, err); err != nil {
				yield(Output{}, err)
				return
			}
		}
	}
}

// following is the state of a Follow.
type following struct {
	p      *Process
	cursor int64
	recent int64
	once   bool
	gaps   [2]bool // that were reported: stdout, stderr
	buf    []byte
	over   bool // the loop is left, or the end was given
	yield  func(Output, error) bool
}

// maxOutputMessage is more than a server sends at once.
const maxOutputMessage = 1 << 20

// connect follows over one connection. Its error is why that broke.
func (f *following) connect(ctx context.Context, r *retry) error {
	c := f.p.c
	if c.err != nil {
		return c.err
	}
	q := url.Values{"cursor": {strconv.FormatInt(f.cursor, 10)}}
	if f.recent > 0 && f.cursor == 0 {
		q.Set("recent", strconv.FormatInt(f.recent, 10))
	}
	if f.once {
		q.Set("follow", "false")
	}
	h := make(http.Header)
	c.authorize(h)
	conn, resp, err := websocket.Dial(ctx, c.base+f.p.path("/output")+"?"+q.Encode(), &websocket.DialOptions{HTTPClient: c.http, HTTPHeader: h})
	if resp != nil {
		c.answers()
	}
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return errorOf(resp, readSome(resp.Body))
		}
		return c.unanswered(ctx, err)
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxOutputMessage)
	r.worked()
	ctx, cancel := context.WithCancel(ctx)
	alive := make(chan struct{})
	go func() {
		defer close(alive)
		keepAlive(ctx, conn)
	}()
	defer func() { cancel(); <-alive }()
	for !f.over {
		kind, data, err := f.read(ctx, conn)
		if err != nil {
			return c.unanswered(ctx, err)
		}
		if err := f.take(kind, data); err != nil {
			return err
		}
	}
	return nil
}

// read reads one message, whose bytes are the caller's to keep. A buffer that takes
// it at once spares the many small reads of one that grows.
func (f *following) read(ctx context.Context, conn *websocket.Conn) (websocket.MessageType, []byte, error) {
	kind, r, err := conn.Reader(ctx)
	if err != nil {
		return 0, nil, err
	}
	if f.buf == nil {
		f.buf = make([]byte, 128<<10)
	}
	n := 0
	for {
		if n == len(f.buf) {
			f.buf = append(f.buf, make([]byte, len(f.buf))...)
		}
		got, err := r.Read(f.buf[n:])
		n += got
		if errors.Is(err, io.EOF) {
			return kind, bytes.Clone(f.buf[:n]), nil
		}
		if err != nil {
			return 0, nil, err
		}
	}
}

// take passes on one message.
func (f *following) take(kind websocket.MessageType, data []byte) error {
	if kind == websocket.MessageBinary {
		if len(data) <= v1.OutputHeader {
			return garbled(errors.New("a frame is too short"))
		}
		fr := Frame{
			Seq: int64(binary.BigEndian.Uint64(data[1:])), Stderr: data[0] == 2,
			At: time.Unix(0, int64(binary.BigEndian.Uint64(data[9:]))), Data: data[v1.OutputHeader:],
		}
		if fr.Seq <= f.cursor {
			return garbled(errors.New("a frame came twice"))
		}
		f.cursor = fr.Seq
		f.give(Output{Frame: fr})
		return nil
	}
	var m v1.ProcessControl
	if err := json.Unmarshal(data, &m); err != nil {
		return garbled(err)
	}
	switch {
	case m.Gap != nil && m.Gap.Stream == "":
		f.give(Output{Gap: m.Gap})
	case m.Gap != nil:
		i := 0
		if m.Gap.Stream == v1.StreamStderr {
			i = 1
		}
		if !f.gaps[i] { // it is sent again on each connection
			f.gaps[i] = true
			f.give(Output{Gap: m.Gap})
		}
	case m.Exit != nil:
		f.give(Output{Exit: m.Exit})
		f.over = true
	case m.End != nil:
		f.over = true
	case m.Error != nil:
		return faultOf(m.Error, "")
	}
	return nil // or of a newer server
}

func (f *following) give(o Output) {
	if !f.over && !f.yield(o, nil) {
		f.over = true
	}
}

// Bounds for detecting that the other end is gone.
const (
	aliveEvery = 10 * time.Second
	aliveBound = 10 * time.Second
)

// keepAlive closes a connection whose other end is gone, which a cut network does not signal. It
// needs a concurrent reader.
func keepAlive(ctx context.Context, conn *websocket.Conn) {
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		one, cancel := context.WithTimeout(ctx, aliveBound)
		err := conn.Ping(one)
		cancel()
		if err != nil {
			_ = conn.CloseNow() // the reader reports it
			return
		}
	}
}
