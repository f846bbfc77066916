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
//
// It speaks to the driver, and not through an [sql.DB]: what that adds are locks,
// goroutines and conversions for connections and types that are not known, a fifth of
// what a commit costs the processor.
type conn struct {
	driver  driver.Conn // nil: it is closed
	dialect *dialect
	stmts   map[string]*stmt
}

func (d *dialect) openConn(ctx context.Context, c driver.Connector) (*conn, error) {
	opened, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{driver: opened, dialect: d, stmts: make(map[string]*stmt)}, nil
}

// prepare returns the statement of a text, and whether the caller has to close it.
func (c *conn) prepare(text string) (s *stmt, once bool, err error) {
	if c.driver == nil {
		return nil, false, sql.ErrConnDone
	}
	if s := c.stmts[text]; s != nil {
		return s, false, nil
	}
	s, err = prepare(c.driver, c.dialect, text)
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
func (c *conn) exec(text string, args ...any) (driver.Result, error) {
	s, once, err := c.prepare(text)
	if err != nil {
		return nil, err
	}
	if once {
		defer s.close()
	}
	return s.run(args)
}

// row runs a statement that returns at most one row; without one it is sql.ErrNoRows.
func (c *conn) row(text string, args []any, dest ...any) error {
	found := false
	err := c.each(context.Background(), text, args, func(scan func(...any) error) error {
		if found {
			return nil
		}
		found = true
		return scan(dest...)
	})
	if err == nil && !found {
		err = sql.ErrNoRows
	}
	return err
}

// each runs a statement and calls fn for every row.
func (c *conn) each(ctx context.Context, text string, args []any, fn func(scan func(...any) error) error) error {
	s, once, err := c.prepare(text)
	if err != nil {
		return err
	}
	if once {
		defer s.close()
	}
	return s.each(ctx, args, fn)
}

// close closes the connection, with the transaction that it may still be in.
// Calling it twice is fine; later statements are sql.ErrConnDone.
func (c *conn) close() {
	if c.driver == nil {
		return
	}
	for _, s := range c.stmts {
		s.close()
	}
	_ = c.driver.Close() // what was committed is in the log
	c.driver = nil
}
