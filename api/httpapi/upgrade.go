// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
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
	// The guard has checked the origin already, with the origins that are trusted.
	conn, err := websocket.Accept(c.W, c.R, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: protocols})
	if err != nil {
		return // Accept has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(limit)
	// The request's own context is over with the upgrade. The right to it is not.
	ctx, release := guard.While(context.WithoutCancel(ctx), ctx)
	defer release()
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, done := c.Bound(ctx)
	defer done()
	wg.Go(func() { c.beat(ctx, conn) })
	serve(ctx, conn)
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
