// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"strconv"
)

func (a *API) getOpenAPI(_ context.Context, c *call, _ *noInput) error {
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(a.document)))
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(a.document) // the client went away: nothing to tell
	return nil
}
