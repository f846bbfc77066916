// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
)

// call is a call of this coat, which may have an idempotency key.
type call struct {
	*httpapi.Call
	key *keyedCall // nil: it has none
}

func callOf(c *httpapi.Call) *call {
	key, _ := c.Value.(*keyedCall)
	return &call{c, key}
}

// op is [httpapi.Op] for handlers of this coat.
func op[In, Out any](id, pattern, summary string, status int, serve func(context.Context, *call, *In) (Out, error)) httpapi.Operation {
	return httpapi.Op(id, pattern, summary, status, func(ctx context.Context, c *httpapi.Call, in *In) (Out, error) {
		return serve(ctx, callOf(c), in)
	})
}

// raw is [httpapi.Raw] for handlers of this coat.
func raw[In any](id, pattern, summary string, status int, serve func(context.Context, *call, *In) error) httpapi.Operation {
	return httpapi.Raw(id, pattern, summary, status, func(ctx context.Context, c *httpapi.Call, in *In) error {
		return serve(ctx, callOf(c), in)
	})
}

// serve serves a call, with its idempotency key where its operation takes one.
func (a *API) serve(o *httpapi.Operation, c *httpapi.Call) error {
	how, ok := o.Extension.(keying)
	if keys := c.R.Header[v1.IdempotencyKey]; ok && a.keys != nil && len(keys) > 0 {
		return a.serveKeyed(o, how, &call{Call: c}, keys)
	}
	return o.Serve(c)
}
