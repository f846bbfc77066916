// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"

	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// tx is one transaction. It holds its context, against the house rule, because
// it is as short-lived as the call that brought the context, and the contract's
// methods have none.
type tx struct {
	ctx     context.Context
	conn    *conn // nil once the transaction is over
	dialect *dialect
	write   bool
}

var _ store.Tx = (*tx)(nil)

func (t *tx) Sandboxes() store.Sandboxes { return sandboxes{t} }
func (t *tx) Events() store.Events       { return events{t} }
func (t *tx) Tokens() store.Tokens       { return tokens{t} }
func (t *tx) Contexts() store.Contexts   { return contexts{t} }
func (t *tx) Snapshots() store.Snapshots { return snapshots{t} }
func (t *tx) Volumes() store.Volumes     { return volumes{t} }
func (t *tx) Runs() store.Runs           { return runs{t} }
func (t *tx) Secrets() store.Secrets     { return secrets{t} }
func (t *tx) Requests() store.Requests   { return requests{t} }

func (t *tx) Skills() store.Skills       { return skills{t} }
func (t *tx) Templates() store.Templates { return templates{t} }
func (t *tx) Pools() store.Pools         { return poolSizes{t} }
func (t *tx) Settings() store.Settings   { return settings{t} }
func (t *tx) Usage() store.Usage         { return usage{t} }
func (t *tx) Projects() store.Projects   { return projects{t} }
func (t *tx) Audit() store.Audit         { return audit{t} }
func (t *tx) Changes() store.Changes     { return changes{t} }
func (t *tx) Webhooks() store.Webhooks   { return webhooks{t} }
func (t *tx) Sessions() store.Sessions   { return sessions{t} }

func (t *tx) PreviewLinks() store.PreviewLinks       { return previewLinks{t} }
func (t *tx) KnownImages() store.KnownImages         { return knownImages{t} }
func (t *tx) NetworkRequests() store.NetworkRequests { return networkRequests{t} }
func (t *tx) UnownedArchives() store.UnownedArchives { return unownedArchives{t} }

// ready reports whether t may still be used, for writing if so asked. It is
// asked before each statement, which is what ends a canceled transaction.
func (t *tx) ready(write bool) error {
	if t.conn == nil {
		return fault.New(fault.Internal, "the transaction is over")
	}
	if write && !t.write {
		return fault.New(fault.Internal, "a View cannot change records")
	}
	return t.ctx.Err()
}

// exec changes rows and returns how many.
func (t *tx) exec(text string, args ...any) (int64, error) {
	if err := t.ready(true); err != nil {
		return 0, err
	}
	res, err := t.conn.exec(text, args...)
	if err != nil {
		return 0, t.dialect.explain(t.ctx, err)
	}
	n, err := res.RowsAffected()
	return n, t.dialect.explain(t.ctx, err)
}

// number inserts a row into a table whose rows are numbered, and returns its number.
func (t *tx) number(text string, args ...any) (int64, error) {
	if err := t.ready(true); err != nil {
		return 0, err
	}
	n, err := t.dialect.number(t.conn, text, args)
	return n, t.dialect.explain(t.ctx, err)
}

// row reads one row; found reports whether it exists.
func (t *tx) row(text string, args []any, dest ...any) (found bool, err error) {
	if err := t.ready(false); err != nil {
		return false, err
	}
	switch err := t.conn.row(text, args, dest...); err {
	case nil:
		return true, nil
	case sql.ErrNoRows:
		return false, nil
	default:
		return false, t.dialect.explain(t.ctx, err)
	}
}

// each reads rows. In a View the statement ends with the context; in an Update
// it does not, see [conn.exec].
func (t *tx) each(text string, args []any, fn func(scan func(...any) error) error) error {
	if err := t.ready(false); err != nil {
		return err
	}
	ctx := t.ctx
	if t.write {
		ctx = context.Background()
	}
	return t.dialect.explain(t.ctx, t.conn.each(ctx, text, args, fn))
}
