// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/api/service"
)

// tellInside puts what the default image has into instructions and descriptions. It is read for
// each answer: an image may be built, or built anew, while the server runs.
func tellInside(images service.Images) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			if err != nil {
				return res, err
			}
			switch r := res.(type) {
			case *mcp.InitializeResult:
				r.Instructions = strings.ReplaceAll(r.Instructions, toolset.InsideMark, toolset.Inside(ctx, images, transport.CallOf(req).Caller))
			case *mcp.DiscoverResult:
				r.Instructions = strings.ReplaceAll(r.Instructions, toolset.InsideMark, toolset.Inside(ctx, images, transport.CallOf(req).Caller))
			case *mcp.ListToolsResult:
				for i, t := range r.Tools {
					if !strings.Contains(t.Description, toolset.InsideMark) {
						continue
					}
					own := *t // the SDK's is shared by all answers
					own.Description = strings.ReplaceAll(t.Description, toolset.InsideMark, toolset.Inside(ctx, images, transport.CallOf(req).Caller))
					r.Tools[i] = &own
				}
			}
			return res, err
		}
	}
}
