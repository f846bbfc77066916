// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package process

import "sandpit.dev/sandbox"

// A path may have 4 KiB, and a thousand changes four megabytes: lists of them have a bound in
// bytes beside that of their number. How many there were is told beside them.
const (
	answeredChanges = 128 << 10 // bytes of paths in a command's result
	recordedChanges = 16 << 10  // in its event
)

// ofBytes is the beginning of a list of changes whose paths have at most so many bytes.
func ofBytes(changes []sandbox.FileChange, most int) []sandbox.FileChange {
	for i := range changes {
		if most -= len(changes[i].Path); most < 0 {
			return changes[:i]
		}
	}
	return changes
}

// Answered are the changes that a command's result has.
func Answered(changes []sandbox.FileChange) []sandbox.FileChange {
	return ofBytes(changes, answeredChanges)
}

// Recorded are those that an event keeps.
func Recorded(changes []sandbox.FileChange) []sandbox.FileChange {
	return ofBytes(changes[:min(len(changes), sandbox.MaxEventChanges)], recordedChanges)
}
