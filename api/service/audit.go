// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/audit"
	"sandpit.dev/audit/recorder"
)

// Audit is the audit log.
type Audit interface {
	List(ctx context.Context, c access.Caller, q recorder.Query) (page []*audit.Record, next string, err error)
	Count(ctx context.Context, c access.Caller, q recorder.Query) (int, error)
	NewExport(c access.Caller, q recorder.Query) (*recorder.Export, error)
	Verify(ctx context.Context, c access.Caller) (*audit.Report, error)
	Prune(ctx context.Context, c access.Caller, before time.Time, dry bool) (int, error)
}
