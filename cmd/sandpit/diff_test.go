// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	v1 "sandpit.dev/api/v1"
)

func TestDiffLinesAreLines(t *testing.T) {
	for want, ch := range map[string]v1.DiffChange{
		"created   /workspace/a b  (4 B)":  {Path: "/workspace/a\nb", Action: "created", SizeBytes: 4},
		"deleted   /etc/issue":             {Path: "/etc/issue", Action: "deleted"},
		`modified  /x\u001b[2J  (2.0 KiB)`: {Path: "/x\x1b[2J", Action: "modified", SizeBytes: 2048},
	} {
		if got := diffLine(&ch); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
