// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package output prints what commands found: tables and lists, data, by a template, and text that steers no
// terminal. It knows no server.
package output

import (
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// Listing is how a command lists what it found: a name or id a line, data, by a template, or a table.
type Listing struct {
	quiet  *bool
	format *Format
	by     *Template
}

// ListFlags adds -o, --format, and -q, whose help says what is left of the list with it.
func ListFlags(c *cobra.Command, quiet string) Listing {
	l := Listing{
		quiet:  c.Flags().BoolP("quiet", "q", false, quiet),
		format: FormatsFlag(c, AsText, AsText, AsWide, AsName, AsJSON, AsYAML),
		by:     new(Template),
	}
	c.Flags().Var(l.by, "format", "print each with this template, such as '{{.id}}'; its fields are those of -o json")
	return l
}

// Names reports whether names or ids alone are printed.
func (l Listing) Names() bool { return *l.quiet || !l.by.Given() && *l.format == AsName }

// Wide reports whether a table with all columns is printed.
func (l Listing) Wide() bool { return !*l.quiet && !l.by.Given() && *l.format == AsWide }

// Columns are a table of things: their heads, and the cells of one thing.
type Columns[T any] struct {
	Head []string
	Row  func(one T, now time.Time) []string
	Rows func(one T, now time.Time) [][]string // instead of Row, where one thing has several

	// With -o wide these follow; nil: none.
	WideHead []string
	WideRow  func(one T, now time.Time) []string

	Whole  any                // what is printed as data; nil: the list
	Called func(one T) string // what -o name prints of one; nil: what -q does
}

// List prints what was found. Name returns what -q prints of one.
func List[T any](w io.Writer, how Listing, found []T, name func(one T) string, in Columns[T]) error {
	if !*how.quiet && *how.format == AsName && in.Called != nil {
		name = in.Called
	}
	switch {
	case *how.quiet || how.by.t == nil && *how.format == AsName:
		for _, one := range found {
			if _, err := fmt.Fprintln(w, Printable(name(one))); err != nil {
				return err
			}
		}
		return nil
	case how.by.t != nil:
		if err := how.by.check(reflect.TypeFor[T]()); err != nil { // also where there is nothing to print
			return err
		}
		for _, one := range found {
			if err := how.by.Write(w, one); err != nil {
				return err
			}
		}
		return nil
	case how.format.IsData() && in.Whole != nil:
		return Data(w, *how.format, in.Whole)
	case how.format.IsData():
		return Data(w, *how.format, found)
	}
	now := time.Now()
	head, wide := in.Head, *how.format == AsWide && in.WideRow != nil
	if wide {
		head = slices.Concat(head, in.WideHead)
	}
	rows := make([][]string, 0, len(found))
	for _, one := range found {
		if in.Rows != nil {
			rows = append(rows, in.Rows(one, now)...)
			continue
		}
		row := in.Row(one, now)
		if wide {
			row = append(row, in.WideRow(one, now)...)
		}
		rows = append(rows, row)
	}
	return Table(w, head, rows)
}

// Collect returns all of a list that comes page by page; never nil, for JSON's sake.
func Collect[T any](pages iter.Seq2[T, error]) ([]T, error) {
	found := []T{}
	for one, err := range pages {
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}
