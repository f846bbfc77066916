// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/sandbox"
)

// Changes returns which files a command changed; never nil.
func Changes(changes []sandbox.FileChange) []v1.FileChange {
	out := make([]v1.FileChange, 0, len(changes))
	for _, ch := range changes {
		out = append(out, v1.FileChange{Path: ch.Path, Escaped: ch.Escaped, Action: ch.Action, SizeBytes: ch.Size})
	}
	return out
}
