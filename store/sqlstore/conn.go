// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// maxPrepared bounds the statements that one connection keeps. The fixed ones
// are about twenty; the rest are the shapes of listings in use.
const maxPrepared = 128

// conn is one connection with its prepared statements. One goroutine at a time.
type conn struct {
	sql   *sql.Conn
	stmts map[string]*sql.Stmt
}

func openConn(ctx context.Context, db *sql.DB) (*conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{sql: c, stmts: make(map[string]*sql.Stmt)}, nil
}

// prepare gives the statement of a text, and whether the caller has to close it.
func (c *conn) prepare(text string) (stmt *sql.Stmt, once bool, err error) {
	if s := c.stmts[text]; s != nil {
		return s, false, nil
	}
	s, err := c.sql.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, false, err
	}
	if len(c.stmts) >= maxPrepared {
		return s, true, nil
	}
	c.stmts[text] = s
	return s, false, nil
}

// exec runs a statement. It is never interrupted: an interrupt would leave the
// connection in doubt, and every statement that changes something is short.
func (c *conn) exec(text string, args ...any) (sql.Result, error) {
	s, once, err := c.prepare(text)
	if err != nil {
		return nil, err
	}
	if once {
		defer s.Close()
	}
	return s.ExecContext(context.Background(), args...)
}

// row runs a statement that gives one row at most.
func (c *conn) row(text string, args []any, dest ...any) error {
	s, once, err := c.prepare(text)
	if err != nil {
		return err
	}
	if once {
		defer s.Close()
	}
	return s.QueryRowContext(context.Background(), args...).Scan(dest...)
}

// each runs a statement and calls fn for every row.
func (c *conn) each(ctx context.Context, text string, args []any, fn func(scan func(...any) error) error) error {
	s, once, err := c.prepare(text)
	if err != nil {
		return err
	}
	if once {
		defer s.Close()
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// close closes the connection itself. Closing an [sql.Conn] would give it back
// to its pool, with the transaction that it may still be in.
func (c *conn) close() {
	for _, s := range c.stmts {
		_ = s.Close()
	}
	_ = c.sql.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.sql.Close()
}
