// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp"
)

func TestAPanicInAMethodIsAnErrorThatTellsNothing(t *testing.T) {
	t.Parallel()
	h := open(t).again(func(o *mcp.Options) {
		o.Extend.Server = func(s *sdk.Server) {
			s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
				return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
					if method == "tools/list" {
						panic("the secret of the house")
					}
					return next(ctx, method, req)
				}
			})
		}
	})
	for _, version := range []string{handshake, stateless} {
		s := h.session("t-alice", version, nil)
		_, err := s.ListTools(t.Context(), nil)
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "the server has a fault") {
			t.Errorf("%s: got %v", version, err)
		}
		ok(t, s, "list_sandboxes", nil) // it goes on
	}
}
