// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access/seen"
	"sandpit.dev/api/mcp/transport"
)

// noticed remembers who sent a message, once it was answered. Notifications need no answer, and tell nothing that requests do not.
func (h *Handler) noticed(profile string) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			caller := transport.CallOf(req).Caller
			if h.seen == nil || caller.Project == "" || strings.HasPrefix(method, "notifications/") {
				return res, err
			}
			m := &seen.Message{Profile: profile, Method: method, Listed: -1}
			said, _ := req.(interface {
				ClientInfo() *mcp.Implementation
				ProtocolVersion() string
			})
			var client *mcp.Implementation
			if said != nil && hasParams(req) { // the SDK looks into them
				client, m.Protocol = said.ClientInfo(), said.ProtocolVersion()
			}
			switch r := req.(type) {
			case *mcp.ServerRequest[*mcp.InitializeParams]:
				if r.Params != nil {
					client, m.Protocol = r.Params.ClientInfo, r.Params.ProtocolVersion
				}
			case *mcp.CallToolRequest:
				if r.Params != nil {
					m.Tool = r.Params.Name
				}
			}
			if client != nil {
				m.Name, m.Version, m.Title = client.Name, client.Version, client.Title
			}
			if list, ok := res.(*mcp.ListToolsResult); ok && err == nil && list != nil {
				m.Listed = len(list.Tools)
			}
			h.seen.Add(caller, m, time.Now())
			return res, err
		}
	}
}

// hasParams reports whether a request has parameters: those that it has not may be a nil pointer in an interface.
func hasParams(req mcp.Request) bool {
	v := reflect.ValueOf(req.GetParams())
	return v.IsValid() && (v.Kind() != reflect.Pointer || !v.IsNil())
}
