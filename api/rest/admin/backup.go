// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"io"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// Backups makes backups of the whole server.
type Backups interface {
	// Allowed reports whether the caller may make one.
	Allowed(access.Caller) error
	// Write writes one to w. What w got before an error is no backup.
	Write(ctx context.Context, c access.Caller, w io.Writer) error
}

// createBackup sends a backup as it is made, as exportSnapshot does an archive.
func (a *API) createBackup(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) error {
	if a.Backups == nil {
		return fault.New(fault.Unsupported, "this server makes no backups")
	}
	if err := a.Backups.Allowed(c.Caller); err != nil {
		return err
	}
	h := c.W.Header()
	h.Set("Content-Type", v1.BackupType)
	h.Set("Content-Disposition", `attachment; filename="sandpit-backup.tar"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	ctx, done := c.Bound(ctx)
	defer done()
	w := c.StallWriter()
	defer w.Close()
	return httpapi.Cause(ctx, a.Backups.Write(ctx, c.Caller, w))
}
