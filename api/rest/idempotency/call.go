// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package idempotency

import (
	"context"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/store/keyed"
)

// Call is a call of this coat, which may have an idempotency key.
type Call struct {
	*httpapi.Call
	key *keyedCall // nil: it has none
}

// Of returns a call as one of this coat.
func Of(c *httpapi.Call) *Call {
	key, _ := c.Value.(*keyedCall)
	return &Call{c, key}
}

// Op is [httpapi.Op] for handlers of this coat.
func Op[In, Out any](id, pattern, summary string, status int, serve func(context.Context, *Call, *In) (Out, error)) httpapi.Operation {
	return httpapi.Op(id, pattern, summary, status, func(ctx context.Context, c *httpapi.Call, in *In) (Out, error) {
		return serve(ctx, Of(c), in)
	})
}

// Raw is [httpapi.Raw] for handlers of this coat.
func Raw[In any](id, pattern, summary string, status int, serve func(context.Context, *Call, *In) error) httpapi.Operation {
	return httpapi.Raw(id, pattern, summary, status, func(ctx context.Context, c *httpapi.Call, in *In) error {
		return serve(ctx, Of(c), in)
	})
}

// Serve returns what serves a call, with its idempotency key where its operation takes one; nil keys: none does.
func Serve(keys *keyed.Keys) func(*httpapi.Operation, *httpapi.Call) error {
	return func(o *httpapi.Operation, c *httpapi.Call) error {
		how, ok := o.Extension.(Keying)
		if sent := c.R.Header[v1.IdempotencyKey]; ok && keys != nil && len(sent) > 0 {
			return serveKeyed(keys, o, how, &Call{Call: c}, sent)
		}
		return o.Serve(c)
	}
}
