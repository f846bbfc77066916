// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
)

// saveImage sends an image as an OCI archive, as it is read. One that breaks off is shorter than its length says.
func (a *API) saveImage(ctx context.Context, c *httpapi.Call, in *byImage) error {
	k, err := Kept(a.Keeper)
	if err != nil {
		return err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	s, err := k.Save(ctx, c.Caller, in.Name)
	if err != nil {
		return httpapi.Cause(ctx, err)
	}
	defer s.Close()
	h := c.W.Header()
	h.Set("Content-Type", v1.ImageType)
	h.Set("Content-Disposition", "attachment")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.FormatInt(s.Size, 10))
	h.Set(v1.ImageDigestHeader, s.Digest)
	if c.R.Method == http.MethodHead {
		c.W.WriteHeader(http.StatusOK)
		return nil
	}
	w := c.StallWriter()
	defer w.Close()
	if err := s.Write(w); err != nil {
		return httpapi.Cause(ctx, err)
	}
	return nil
}

type pushImage struct {
	Name string `path:"name" doc:"the image's name, or its digest"`
	Body v1.PushImage
}

// pushTold is the least time between two events that say how far a push is.
const pushTold = 200 * time.Millisecond

// pushImage pushes an image, and streams how far it is.
func (a *API) pushImage(ctx context.Context, c *httpapi.Call, in *pushImage) error {
	if err := c.Caller.Require(access.ServerAdmin); err != nil { // before a stream begins
		return err
	}
	k, err := Kept(a.Keeper)
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
