// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"sandpit.dev/fault"
)

// Exec runs a program in a container as root, and returns its standard input and output as a
// connection, which ends when the program does. What it writes to its standard error is part of the
// error of a Read that finds the end.
func (c *Client) Exec(ctx context.Context, id string, argv ...string) (net.Conn, error) {
	var made struct {
		ID string `json:"Id"`
	}
	err := c.call(ctx, request{method: http.MethodPost, path: container(id, "/exec"), in: map[string]any{
		"Cmd": argv, "User": "0:0", "AttachStdin": true, "AttachStdout": true, "AttachStderr": true,
	}, within: callTimeout}, &made)
	if err != nil {
		return nil, err
	}
	if made.ID == "" {
		return nil, c.noEngine(nil, "makes a program without an id")
	}
	start := request{method: http.MethodPost, path: "/exec/" + url.PathEscape(made.ID) + "/start", within: callTimeout}
	// The stream lasts longer than its limit, which bounds its begin alone.
	limit, cancel := WithTimeout(ctx, c.clock, start.within, errTimeLimit)
	defer cancel()
	nc, err := c.dial(limit)
	if err != nil {
		return nil, c.failed(ctx, start, cmp.Or(context.Cause(limit), err))
	}
	stop := context.AfterFunc(limit, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	r, err := c.upgrade(nc, start.path)
	if !stop() {
		err = context.Cause(limit)
	}
	if err != nil {
		_ = nc.Close()
		if _, told := errors.AsType[*fault.Error](err); !told {
			err = c.failed(ctx, start, err)
		}
		return nil, err
	}
	_ = nc.SetDeadline(time.Time{})
	return &execStream{Conn: nc, r: r}, nil
}

// dial makes a connection of its own.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	host := c.Host()
	nc, err := c.transport.DialContext(ctx, host.network, host.address)
	if err != nil || host.tls == nil {
		return nc, err
	}
	t := tls.Client(nc, host.tls)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = nc.Close()
		return nil, err
	}
	return t, nil
}

// upgrade starts what was made, and has the connection be its streams.
func (c *Client) upgrade(nc net.Conn, path string) (*bufio.Reader, error) {
	body := []byte(`{"Detach":false,"Tty":false}`)
	_, err := fmt.Fprintf(nc, "POST /v%s%s HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: %d\r\n\r\n%s",
		c.APIVersion(), path, len(body), body)
	if err != nil {
		return nil, err
	}
	head := &io.LimitedReader{R: nc, N: maxWords}
	r := bufio.NewReader(head)
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodPost})
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
	case resp.StatusCode >= 300:
		err := c.refused(resp)
		_ = resp.Body.Close() // the connection ends with it
		return nil, err
	default:
		return nil, c.noEngine(nil, "gives no stream of a program")
	}
	head.N = 1<<63 - 1 // the rest is the program's
	return r, nil
}

// execStream carries standard input as it is, and the two others in frames.
type execStream struct {
	net.Conn
	readMu sync.Mutex
	r      *bufio.Reader
	left   uint32 // of the frame that is being read
	stderr bytes.Buffer
}

// Streams of frames.
const (
	frameStdout = 1
	frameStderr = 2
	frameSystem = 3 // of an error of the Engine's
)

// Read reads standard output.
func (e *execStream) Read(b []byte) (int, error) {
	e.readMu.Lock()
	defer e.readMu.Unlock()
	for e.left == 0 {
		var head [8]byte
		if _, err := io.ReadFull(e.r, head[:]); err != nil {
			if err == io.EOF && e.stderr.Len() > 0 {
				err = fmt.Errorf("%w: %s", io.ErrUnexpectedEOF, clip(e.stderr.String()))
			}
			return 0, err
		}
		size := binary.BigEndian.Uint32(head[4:])
		switch head[0] {
		case frameStdout:
			e.left = size
		case frameStderr, frameSystem:
			if err := e.keep(int64(size)); err != nil {
				return 0, err
			}
		default:
			return 0, fmt.Errorf("the Engine sends a frame of kind %d", head[0])
		}
	}
	n, err := e.r.Read(b[:min(len(b), int(e.left))])
	e.left -= uint32(n) //nolint:gosec // at most left
	return n, err
}

// keep reads a frame of standard error, of which the first words are kept.
func (e *execStream) keep(size int64) error {
	room := min(size, int64(max(0, 1024-e.stderr.Len())))
	if _, err := io.CopyN(&e.stderr, e.r, room); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, e.r, size-room)
	return err
}

// CloseWrite ends standard input.
func (e *execStream) CloseWrite() error {
	if w, ok := e.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return fmt.Errorf("end what is sent: %w", net.ErrClosed)
}
