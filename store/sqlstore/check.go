// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"sandpit.dev/fault"
)

// Check reads the whole data base at path and is nil if it is sound, or not there. It
// changes nothing. Nobody else may have it open. What is wrong is Unavailable.
func Check(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	const remedy = "put a copy in its place, or move it away to begin anew"
	db, err := pool(path, "query_only(1)")
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be opened", path).WithRemedy(remedy)
	}
	defer func() { _ = db.Close() }()
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fault.Wrap(fault.Unavailable, err, "%s cannot be read", path).WithRemedy(remedy)
	}
	if verdict != "ok" {
		return fault.New(fault.Unavailable, "%s is damaged: %s", path, verdict).WithRemedy(remedy)
	}
	return nil
}
