// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"strconv"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
)

// saveImage sends an image as an OCI archive, as it is read. One that breaks off is shorter than its length says.
func (a *API) saveImage(ctx context.Context, c *call, in *byImage) error {
	k, err := a.keeper()
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
