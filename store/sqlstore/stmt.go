// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// stmt is a prepared statement. It is not used again before its rows are read.
type stmt struct {
	driver driver.Stmt
	exec   driver.StmtExecContext  // the same
	query  driver.StmtQueryContext // the same
	order  []int                   // which argument each parameter is
	args   []driver.NamedValue     // one for each parameter; empty between uses
	row    []driver.Value          // as long as the widest row so far
}

func prepare(c driver.Conn, d *dialect, text string) (*stmt, error) {
	text, order := d.parameters(text)
	prepared, err := c.Prepare(text)
	if err != nil {
		return nil, err
	}
	s := &stmt{driver: prepared, order: order, args: make([]driver.NamedValue, len(order))}
	var execs, queries bool
	s.exec, execs = prepared.(driver.StmtExecContext)
	s.query, queries = prepared.(driver.StmtQueryContext)
	if !execs || !queries {
		_ = prepared.Close()
		return nil, errors.New("the driver of the data base is too old: its statements take no context")
	}
	return s, nil
}

// bind puts the arguments in the order of the parameters.
func (s *stmt) bind(args []any) error {
	for i, from := range s.order {
		if from >= len(args) {
			return fmt.Errorf("a statement has a parameter %d, and %d arguments", from+1, len(args))
		}
		s.args[i] = driver.NamedValue{Ordinal: i + 1, Value: args[from]}
	}
	return nil
}

// run is [conn.exec].
func (s *stmt) run(args []any) (driver.Result, error) {
	defer clear(s.args)
	if err := s.bind(args); err != nil {
		return nil, err
	}
	return s.exec.ExecContext(context.Background(), s.args)
}

// each is [conn.each].
func (s *stmt) each(ctx context.Context, args []any, fn func(scan func(...any) error) error) (err error) {
	defer clear(s.args)
	if err := s.bind(args); err != nil {
		return err
	}
	rows, err := s.query.QueryContext(ctx, s.args)
	if err != nil {
		return err
	}
	defer func() {
		clear(s.row)
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	n := len(rows.Columns())
	if len(s.row) < n {
		s.row = make([]driver.Value, n)
	}
	row := s.row[:n]
	scan := func(dest ...any) error { return assign(dest, row) }
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch err := rows.Next(row); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := fn(scan); err != nil {
			return err
		}
	}
}

func (s *stmt) close() { _ = s.driver.Close() }

// assign copies a row to where its columns go: pointers to strings, int64s, float64s and
// byte slices, which are all that this package's columns hold.
func assign(dest []any, row []driver.Value) error {
	if len(dest) != len(row) {
		return fmt.Errorf("a row has %d columns, and %d places", len(row), len(dest))
	}
	for i, v := range row {
		ok := false
		switch to := dest[i].(type) {
		case *string:
			*to, ok = v.(string)
		case *int64:
			*to, ok = v.(int64)
		case *float64:
			*to, ok = v.(float64)
		case *[]byte:
			var b []byte
			b, ok = v.([]byte)
			*to, ok = bytes.Clone(b), ok || v == nil
		}
		if !ok {
			return fmt.Errorf("column %d is %T, which does not fit %T", i, v, dest[i])
		}
	}
	return nil
}
