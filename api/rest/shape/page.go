// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// SandboxPage returns a page of a list of sandboxes. Its number is nil for one by cursor.
func SandboxPage(got engine.Page, page *int, size int) v1.SandboxPage {
	out := v1.SandboxPage{
		Items: make([]v1.Sandbox, 0, len(got.Items)), Total: got.Total, Page: page, PageSize: size,
		StatusCounts: Counts(got.Counts), NextCursor: TextOrNull(got.Next),
	}
	for _, s := range got.Items {
		out.Items = append(out.Items, Sandbox(s))
	}
	return out
}

// LiveStates returns the states of sandboxes that have a record.
func LiveStates() (out []string) {
	for _, s := range sandbox.States() {
		if s != sandbox.Deleted {
			out = append(out, string(s))
		}
	}
	return out
}

// Counts returns how many sandboxes are in each of the live states.
func Counts(m map[sandbox.State]int) map[string]int {
	out := make(map[string]int)
	for _, s := range LiveStates() {
		out[s] = m[sandbox.State(s)]
	}
	return out
}
