// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/sandbox"
	"sandpit.dev/trace"
)

// traced makes a span of each message of a request that has one, by OpenTelemetry's names for MCP. No argument is in it.
func traced(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if trace.Of(ctx) == nil {
			return next(ctx, method, req)
		}
		name, tool := sandbox.Clip(method, maxLoggedName), ""
		if call, ok := req.(*mcp.CallToolRequest); ok && call.Params != nil {
			tool = sandbox.Clip(call.Params.Name, maxLoggedName)
			name += " " + tool
		}
		ctx, s := trace.Start(ctx, name)
		defer s.End()
		s.Text("mcp.method.name", sandbox.Clip(method, maxLoggedName))
		s.Text("gen_ai.tool.name", tool)
		res, err := next(ctx, method, req)
		switch r, ok := res.(*mcp.CallToolResult); {
		case err != nil:
			s.Fail("protocol")
		case ok && r != nil && r.IsError:
			s.Fail("tool_error")
		}
		return res, err
	}
}
