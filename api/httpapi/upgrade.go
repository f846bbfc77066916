// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/api/guard"
)

// Upgrade makes a WebSocket of a request, whose messages have at most limit bytes, keeps it
// alive and closes it when serve returns. The context of serve goes on with the connection, and
// ends with the handler or with the caller's token. A request that cannot be upgraded is answered.
func (c *Call) Upgrade(ctx context.Context, limit int64, serve func(context.Context, *websocket.Conn)) {
	c.UpgradeAs(ctx, limit, nil, serve)
}

// UpgradeAs is Upgrade to the first of protocols that the client offers, or to none.
func (c *Call) UpgradeAs(ctx context.Context, limit int64, protocols []string, serve func(context.Context, *websocket.Conn)) {
	conn, ctx, end, err := c.accept(ctx, c.W, limit, protocols)
	if err != nil {
		return
	}
	var beating sync.WaitGroup
	defer beating.Wait()
	defer end()
	beating.Go(func() { c.beat(ctx, conn) })
	serve(ctx, conn)
}

// UpgradeDetached is Upgrade for connections of which there are many, with short messages and a heartbeat of their own. What begin
// returns goes on in a goroutine of its own once the handler has returned, see [guard.Detach]; nil: it is over.
func (c *Call) UpgradeDetached(ctx context.Context, limit int64, begin func(context.Context, *websocket.Conn) (serve func())) {
	conn, ctx, end, err := c.accept(ctx, smallBuffers{c.W}, limit, nil)
	if err != nil {
		return
	}
	var serve func()
	defer func() {
		if serve == nil {
			end()
		}
	}()
	if serve = begin(ctx, conn); serve != nil {
		guard.Detach(ctx, func() { defer end(); serve() })
	}
}

// accept makes a WebSocket of the call, which end closes. The client was answered if it fails.
func (c *Call) accept(ctx context.Context, w http.ResponseWriter, limit int64, protocols []string) (_ *websocket.Conn, _ context.Context, end func(), _ error) {
	// The guard has checked the origin already, with the origins that are trusted.
	conn, err := websocket.Accept(w, c.R, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: protocols})
	if err != nil {
		return nil, nil, nil, err
	}
	conn.SetReadLimit(limit)
	// The request's own context is over with the upgrade. The right to it is not.
	ctx, release := guard.While(context.WithoutCancel(ctx), ctx)
	ctx, done := c.Bound(ctx)
	return conn, ctx, func() {
		done()
		release()
		_ = conn.CloseNow()
	}, nil
}

// smallBuffers has a connection be hijacked with less than the 8 KB that net/http has for one.
type smallBuffers struct{ http.ResponseWriter }

// Bytes of the buffers. Longer messages need no more of them, but more calls of the kernel.
const (
	smallRead  = 256
	smallWrite = 2 << 10
)

// Hijack is http.Hijacker's.
func (w smallBuffers) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	sent, _ := rw.Reader.Peek(rw.Reader.Buffered()) // ahead of the answer
	r := bufio.NewReaderSize(bytes.NewReader(sent), max(smallRead, len(sent)))
	_, err = r.Peek(len(sent)) // what is not in the buffer, websocket.Accept loses
	return conn, bufio.NewReadWriter(r, bufio.NewWriterSize(conn, smallWrite)), err
}

// beat keeps the proxies on the way from taking a connection for a forgotten one. It expects no
// answer: while a program takes nothing, its client's messages are not read. A client that went
// away without a word is found by TCP itself.
func (c *Call) beat(ctx context.Context, conn *websocket.Conn) {
	tick := time.NewTicker(c.Heartbeat())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// A write that is cut off by its context costs the connection.
		pctx, cancel := context.WithTimeout(ctx, max(c.Heartbeat(), pingPatience))
		_ = conn.Ping(pctx)
		cancel()
	}
}

// pingPatience is the least time that a busy machine is given to write a ping.
const pingPatience = 500 * time.Millisecond
