// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import "sandpit.dev/fault"

const (
	minIDLength = 8
	maxIDLength = 32
)

// checkID refuses whatever is not a plain lower-case word, so that no id can
// be a path, a hidden file or a name with a meaning of its own.
func checkID(id string) error {
	if len(id) < minIDLength || len(id) > maxIDLength {
		return fault.InvalidField("id", "has %d characters; a layer's id has %d to %d", len(id), minIDLength, maxIDLength)
	}
	for i := range len(id) {
		if c := id[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return fault.InvalidField("id", "%q is not allowed; a layer's id has only a to z and 0 to 9", id)
		}
	}
	return nil
}
