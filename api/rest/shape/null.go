// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"time"
)

// TextOrNull returns a text, or null for an empty one.
func TextOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// TimeOrNull returns a time in UTC, or null for the zero time.
func TimeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// MapOrEmpty returns a map that is never null.
func MapOrEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// NumberOrNull returns a number, or null for zero.
func NumberOrNull[T int | float64](n T) *T {
	if n == 0 {
		return nil
	}
	return &n
}
