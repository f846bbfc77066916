// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/spf13/cobra"
)

// listing is how a command lists what it found: a name or id a line, JSON, or a table.
type listing struct {
	quiet  *bool
	format *format
}

// listFlags adds -o, and -q, whose help says what is left of the list with it.
func listFlags(c *cobra.Command, quiet string) listing {
	return listing{quiet: c.Flags().BoolP("quiet", "q", false, quiet), format: formatFlag(c)}
}

// columns are a table of things: their heads, and the cells of one thing.
type columns[T any] struct {
	head []string
	row  func(one T, now time.Time) []string
}

// list prints what was found. Name gives what -q prints of one.
func list[T any](w io.Writer, how listing, found []T, name func(one T) string, in columns[T]) error {
	switch {
	case *how.quiet:
		for _, one := range found {
			if _, err := fmt.Fprintln(w, printable(name(one))); err != nil {
				return err
			}
		}
		return nil
	case *how.format == asJSON:
		return writeJSON(w, found)
	}
	now := time.Now()
	rows := make([][]string, 0, len(found))
	for _, one := range found {
		rows = append(rows, in.row(one, now))
	}
	return table(w, in.head, rows)
}

// collect gives all of a list that comes page by page; never nil, for JSON's sake.
func collect[T any](pages iter.Seq2[T, error]) ([]T, error) {
	found := []T{}
	for one, err := range pages {
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}
