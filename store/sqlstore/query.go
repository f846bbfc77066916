// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"strconv"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// where builds the conditions of a listing and collects their arguments. Text
// that came from a caller is only ever an argument.
type where struct {
	text strings.Builder
	args []any
}

// arg adds an argument and returns its placeholder.
func (w *where) arg(v any) string {
	w.args = append(w.args, v)
	return "$" + strconv.Itoa(len(w.args))
}

func (w *where) and(condition string) {
	if w.text.Len() == 0 {
		w.text.WriteString(" WHERE ")
	} else {
		w.text.WriteString(" AND ")
	}
	w.text.WriteString(condition)
}

func (w *where) String() string { return w.text.String() }

// in adds that a column has one of the values.
func in[T ~string](w *where, column string, values []T) {
	if len(values) == 0 {
		return
	}
	marks := make([]string, len(values))
	for i, v := range values {
		marks[i] = w.arg(string(v))
	}
	w.and(column + " IN (" + strings.Join(marks, ", ") + ")")
}

// unindexed hides a text column from the planner. Where several indexes fit, it
// has no statistics to choose by, and the wrong one walks a whole project to
// find one sandbox.
func unindexed(column string) string { return "(" + column + " || '')" }

// pageSize checks a page's bounds.
func pageSize(limit, offset int, cursor string) (int, error) {
	switch {
	case limit < 0 || limit > store.MaxPage:
		return 0, fault.InvalidField("limit", "%d is outside 1 to %d", limit, store.MaxPage)
	case offset < 0:
		return 0, fault.InvalidField("offset", "%d is negative", offset)
	case offset > 0 && cursor != "":
		return 0, fault.InvalidField("offset", "a page has a cursor or an offset, not both")
	case limit == 0:
		return store.DefaultPage, nil
	}
	return limit, nil
}

// readPage reads the rows of a page's statement, which asks for one more than limit to find
// whether there is a next page. Each row is scanned into dest, and read returns its value.
func readPage[T any](t *tx, text string, args []any, limit int, dest []any, read func() (T, error)) (page []T, more bool, err error) {
	err = t.each(text, args, func(scan func(...any) error) error {
		if len(page) == limit {
			more = true
			return nil
		}
		if err := scan(dest...); err != nil {
			return err
		}
		x, err := read()
		page = append(page, x)
		return err
	})
	return page, more, err
}
