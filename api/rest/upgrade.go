// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"

	"github.com/coder/websocket"

	"sandpit.dev/api/guard"
)

// upgrade makes a WebSocket of a request whose messages have at most limit bytes, and closes
// it when serve returns. The context that serve gets goes on with the connection, and ends with the
// server or with the caller's token. A request that cannot be upgraded is answered.
func (a *API) upgrade(ctx context.Context, c *call, limit int64, serve func(context.Context, *websocket.Conn)) {
	// The guard has checked the origin already, with the origins that are trusted.
	conn, err := websocket.Accept(c.w, c.r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(limit)
	// The request's own context is over with the upgrade. The right to it is not.
	ctx, release := guard.While(context.WithoutCancel(ctx), ctx)
	defer release()
	ctx, done := a.bound(ctx)
	defer done()
	serve(ctx, conn)
}
