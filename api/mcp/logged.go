// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/sandbox"
)

// Logs says what the log has of clients; nil functions: nothing. It may change from message to message.
type Logs struct {
	Messages func() bool // a line for each, with its method
	Tools    func() bool // a line for each call of a tool, with its name and outcome, without arguments
}

// maxLoggedName bounds what a client may write into the log by the name of a method or a tool.
const maxLoggedName = 80 // bytes

// logged writes the lines that [Logs] asks for.
func (h *Handler) logged(next mcp.MethodHandler) mcp.MethodHandler {
	on := func(f func() bool) bool { return f != nil && f() }
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call, isCall := req.(*mcp.CallToolRequest)
		tools := isCall && call.Params != nil && on(h.logs.Tools)
		if !tools && !on(h.logs.Messages) {
			return next(ctx, method, req)
		}
		began := time.Now()
		res, err := next(ctx, method, req)
		attrs := []slog.Attr{slog.String("method", sandbox.Clip(method, maxLoggedName)), slog.Duration("duration", time.Since(began))}
		if c, known := h.caller(ctx); known == nil {
			attrs = append(attrs, slog.String("request", c.RequestID), slog.String("project", c.Project), slog.String("actor", c.Actor))
		}
		failed := err != nil
		if r, ok := res.(*mcp.CallToolResult); ok && r != nil {
			failed = failed || r.IsError
		}
		attrs = append(attrs, slog.Bool("failed", failed))
		what := "message of a client"
		if tools {
			what = "call of a tool"
			attrs = append(attrs, slog.String("tool", sandbox.Clip(call.Params.Name, maxLoggedName)))
		}
		h.log.LogAttrs(ctx, slog.LevelInfo, what, attrs...)
		return res, err
	}
}
