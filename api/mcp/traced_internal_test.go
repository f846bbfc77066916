// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/trace"
)

// A message is of the trace that its _meta names, through the SDK; what is malformed there is as nothing.
func TestACallIsOfTheTraceThatItsMetaNames(t *testing.T) {
	const (
		request = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		own     = "00-11111111111111111111111111111111-2222222222222222-01"
	)
	tracer := trace.New(trace.Options{Export: func(*trace.Data) {}})
	seen := make(chan string, 1)
	s := mcp.NewServer(&mcp.Implementation{Name: "server"}, nil)
	s.AddTool(&mcp.Tool{Name: "tool", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		seen <- trace.Of(ctx).TraceID()
		return &mcp.CallToolResult{}, nil
	})
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { // as the guard does
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			ctx, span := tracer.Begin(ctx, "request", request, "")
			defer span.End()
			return traced(next)(ctx, method, req)
		}
	})
	here, there := mcp.NewInMemoryTransports()
	if _, err := s.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "client"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for _, row := range []struct {
		name string
		meta mcp.Meta
		want string
	}{
		{"None", nil, request[3:35]},
		{"ItsOwn", mcp.Meta{"traceparent": own, "tracestate": "vendor=1"}, own[3:35]},
		{"Malformed", mcp.Meta{"traceparent": "00-1111-2222-01"}, request[3:35]},
		{"NoText", mcp.Meta{"traceparent": 7, "tracestate": []any{}}, request[3:35]},
		{"NotKept", mcp.Meta{"traceparent": own[:53] + "00"}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Meta: row.meta, Name: "tool"}); err != nil {
				t.Fatal(err)
			}
			if got := <-seen; got != row.want {
				t.Errorf("the call is in the trace %q, want %q", got, row.want)
			}
		})
	}
}
