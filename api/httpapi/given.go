// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

// Given returns a text that a request may leave out, or "" where it does.
func Given(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
