// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
)

type pushImage struct {
	Name string `path:"name" doc:"the image's name, or its digest"`
	Body v1.PushImage
}

// pushTold is the least time between two events that say how far a push is.
const pushTold = 200 * time.Millisecond

// pushImage pushes an image, and streams how far it is.
func (a *API) pushImage(ctx context.Context, c *call, in *pushImage) error {
	if err := c.Caller.Require(access.ServerAdmin); err != nil { // before a stream begins
		return err
	}
	k, err := a.keeper()
	if err != nil {
		return err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	ctx, stop := guard.WhilePresent(ctx)
	defer stop()
	s := c.Events()
	defer s.Close()
	var last time.Time
	_ = s.Send(v1.PushProgress, 0, v1.PushStep{}) // a client that went away is found by the context
	pushed, err := k.Push(ctx, c.Caller, in.Name, in.Body.Reference, func(sent, total int64) {
		if now := time.Now(); sent == total || now.Sub(last) >= pushTold {
			last = now
			_ = s.Send(v1.PushProgress, 0, v1.PushStep{SentBytes: sent, TotalBytes: total})
		}
	})
	if err != nil {
		return s.Fail(httpapi.Cause(ctx, err))
	}
	s.End()
	_ = s.Send(v1.PushDone, 0, v1.PushedImage{Reference: pushed.Reference, Digest: pushed.Digest, SizeBytes: pushed.Size, SentBytes: pushed.Sent})
	return nil
}
