// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/sandbox"
	"sandpit.dev/trace"
)

// callersTrace returns what a message's _meta says of the trace that it is part of, as the headers traceparent and
// tracestate of W3C's Trace Context would; "": nothing.
func callersTrace(req mcp.Request) (parent, state string) {
	p := req.GetParams()
	if p == nil || reflect.ValueOf(p).IsNil() {
		return "", ""
	}
	meta := p.GetMeta()
	parent, _ = meta["traceparent"].(string)
	state, _ = meta["tracestate"].(string)
	return parent, state
}

// traced makes a span of each message of a request that has one, by OpenTelemetry's names for MCP. No argument is in it. It
// is part of the trace that the message names, where it does, else of its request's.
func traced(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		parent, state := callersTrace(req)
		if trace.Of(ctx) == nil && parent == "" {
			return next(ctx, method, req)
		}
		name, tool := sandbox.Clip(method, maxLoggedName), ""
		if call, ok := req.(*mcp.CallToolRequest); ok && call.Params != nil {
			tool = sandbox.Clip(call.Params.Name, maxLoggedName)
			name += " " + tool
		}
		ctx, s := trace.Continue(ctx, name, parent, state)
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
