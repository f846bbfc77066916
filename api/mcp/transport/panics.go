// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// catchPanics turns a panic in a method's handler into an error. The handler runs in a goroutine
// of the SDK's, where no guard would keep a panic from ending the server. The error reveals
// nothing internal to the client.
func (h *Handler) catchPanics(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				h.log.ErrorContext(ctx, "a method panicked", "method", method, "panic", v, "stack", string(debug.Stack()))
				res, err = nil, protocolError(nil)
			}
		}()
		return next(ctx, method, req)
	}
}
