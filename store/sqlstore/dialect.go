// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"sandpit.dev/fault"
)

// dialect is all that differs between the data bases that this package speaks
// to. Every other statement is one text for all of them.
type dialect struct {
	beginUpdate string
	beginView   string
	types       *strings.Replacer                                     // of the migrations
	parameters  func(text string) (string, []int)                     // of a statement: its text, and for each parameter which argument it is
	contains    func(column, part string) string                      // exact bytes, no wildcards
	member      func(column, object, condition string) string         // an object in a column's JSON has a member of which a condition on key and value holds
	number      func(c *conn, text string, args []any) (int64, error) // inserts a row, and returns its {{seq}}
	unique      func(error) bool                                      // a unique index refused it
	code        func(error) (fault.Code, string)                      // what an error means to a caller
}

func sqliteDialect() dialect {
	return dialect{
		// The write lock is taken at once: an upgrade in the middle of a
		// transaction can fail in a way that no waiting mends.
		beginUpdate: "BEGIN IMMEDIATE",
		beginView:   "BEGIN",
		types:       strings.NewReplacer("{{seq}}", "INTEGER PRIMARY KEY", "{{bytes}}", "BLOB"),
		parameters:  unnamed,
		contains:    func(column, part string) string { return "instr(" + column + ", " + part + ") > 0" },
		member: func(column, object, condition string) string {
			return "EXISTS (SELECT 1 FROM json_each(" + column + " -> '" + object + "') WHERE " + condition + ")"
		},
		number: func(c *conn, text string, args []any) (int64, error) { // RETURNING takes a journal and a table
			res, err := c.exec(text, args...)
			if err != nil {
				return 0, err
			}
			return res.LastInsertId()
		},
		unique: func(err error) bool {
			c := sqliteCode(err)
			return c == sqlite3.SQLITE_CONSTRAINT_UNIQUE || c == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
		},
		code: func(err error) (fault.Code, string) {
			switch sqliteCode(err) & 0xff {
			case sqlite3.SQLITE_FULL:
				return fault.Full, "the disk that holds the records is full"
			case sqlite3.SQLITE_TOOBIG:
				return fault.TooLarge, "a value is larger than a record can hold"
			case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
				return fault.Unavailable, "the data base is damaged"
			case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
				return fault.Unavailable, "the data base is held by another program"
			case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
				return fault.Unavailable, "the disk that holds the records does not answer"
			}
			return fault.Internal, "internal error of the data base"
		},
	}
}

// unnamed writes the parameters $1, $2 and so on as question marks, and returns which argument
// each of them is. SQLite's driver asks for the name of each parameter that has one, each time,
// and it takes $1 for a name.
func unnamed(text string) (string, []int) {
	var b strings.Builder
	var order []int
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String(), order
		}
		n, digits := 0, 0
		for digits < len(after) && '0' <= after[digits] && after[digits] <= '9' {
			n = 10*n + int(after[digits]-'0')
			digits++
		}
		b.WriteByte('?')
		order, text = append(order, n-1), after[digits:]
	}
}

// sqliteCode is the extended result code of err, or 0.
func sqliteCode(err error) int {
	if e, ok := asSQLite(err); ok {
		return e.Code()
	}
	return 0
}
