// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"modernc.org/sqlite"

	"sandpit.dev/fault"
)

func asSQLite(err error) (*sqlite.Error, bool) { return errors.AsType[*sqlite.Error](err) }

// explain returns err a code and a message that is safe to show. Errors that have
// a code already, and those of a context, pass as they are.
func (d *dialect) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if ctx.Err() != nil {
		// An interrupted statement reports the interrupt, not its reason.
		return ctx.Err()
	}
	if errors.Is(err, sql.ErrConnDone) {
		return fault.Wrap(fault.Internal, err, "the transaction is over")
	}
	code, msg := d.code(err)
	if code == fault.Full {
		return fault.NoSpace(fault.RecordsDisk, err, "%s", msg).
			WithRemedy("free space on the file system of the data directory")
	}
	return fault.Wrap(code, err, "%s", msg)
}
