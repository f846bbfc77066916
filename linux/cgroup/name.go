// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import "sandpit.dev/fault"

// Names become path elements: only letters and digits, so none can be "..",
// hold a slash, or be taken for one of our own (_agent0).
const (
	minName = 4
	maxName = 32
)

func validName(s string) bool {
	if len(s) < minName || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func checkName(field, s string) error {
	if validName(s) {
		return nil
	}
	return fault.InvalidField(field, "%.64q: want %d to %d characters of a-z and 0-9", s, minName, maxName)
}
