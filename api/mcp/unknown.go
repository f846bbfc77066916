// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/sandbox"
)

// refuseUnknown answers a call of a tool that is not here with what to do: who switches on the
// group that has it, or the name that was meant. The SDK says only that the tool is unknown.
func refuseUnknown(p toolset.Profile, on []string) mcp.Middleware {
	here := make(map[string]bool)
	for _, t := range p.Tools(on) {
		here[t.Name] = true
	}
	groups := make(map[string]string) // of tools that are off
	for _, t := range p.Tools(toolset.Groups()) {
		if !here[t.Name] {
			groups[t.Name] = t.Group
		}
	}
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			r, ok := req.(*mcp.CallToolRequest)
			if !ok || r.Params == nil || here[r.Params.Name] {
				return next(ctx, method, req)
			}
			name := r.Params.Name
			if g := groups[name]; g != "" {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q: the group %s is switched off on this server; its operator switches it on by mcp.groups: [%s] in the configuration or SANDPIT_MCP_GROUPS=%s", name, g, g, g)}
			}
			res, err := next(ctx, method, req) // a server may have tools beside the profile's
			if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == jsonrpc.CodeInvalidParams && strings.HasPrefix(e.Message, "unknown tool") {
				message := fmt.Sprintf("unknown tool %q", sandbox.Clip(name, 80))
				if near := toolset.NearestTool(name, here); near != "" {
					message += fmt.Sprintf("; did you mean %s?", near)
				}
				err = &jsonrpc.Error{Code: e.Code, Message: message}
			}
			return res, err
		}
	}
}
