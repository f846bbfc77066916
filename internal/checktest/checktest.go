// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package checktest compares values one by one, so that a test that fails names the value that
// was another, and says what it was.
package checktest

import "testing"

// Equal fails a test where got is not want.
func Equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: got %#v, want %#v", what, got, want)
	}
}

// Points fails a test where got is nil or does not point to want.
func Points[T comparable](tb testing.TB, what string, got *T, want T) {
	tb.Helper()
	switch {
	case got == nil:
		tb.Errorf("%s: got none, want %#v", what, want)
	case *got != want:
		tb.Errorf("%s: got %#v, want %#v", what, *got, want)
	}
}

// Absent fails a test where got is not nil.
func Absent[T any](tb testing.TB, what string, got *T) {
	tb.Helper()
	if got != nil {
		tb.Errorf("%s: got %#v, want none", what, *got)
	}
}

// Some ends a test where got is the zero value: what comes after may look into it.
func Some[T comparable](tb testing.TB, what string, got T) {
	tb.Helper()
	var zero T
	if got == zero {
		tb.Fatalf("%s: got none", what)
	}
}

// Len ends a test where got has another number of elements: what comes after may look at them.
func Len[S ~[]E, E any](tb testing.TB, what string, got S, want int) {
	tb.Helper()
	if len(got) != want {
		tb.Fatalf("%s: got %d, want %d: %+v", what, len(got), want, got)
	}
}
