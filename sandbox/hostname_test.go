// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"strings"
	"testing"

	"sandpit.dev/sandbox"
)

func TestTheHostNameIsTheKeyWhereThatIsAHostName(t *testing.T) {
	const id = "abcdefghijkl"
	for _, key := range []string{"web", "Web-1", "api.example", "1st", strings.Repeat("a", 63)} {
		if got := (&sandbox.Sandbox{ID: id, Key: key}).Hostname(); got != key {
			t.Errorf("the key %q: the host name is %q", key, got)
		}
	}
	for _, key := range []string{
		"", "my_box", "a b", "-a", "a-", "a..b", ".a", "a.", "a-.b", "müller", "10.0.0.1", "42", "a.1", strings.Repeat("a", 64), "a\nb", "a:b",
	} {
		if got := (&sandbox.Sandbox{ID: id, Key: key}).Hostname(); got != id {
			t.Errorf("the key %q: the host name is %q, want the id", key, got)
		}
	}
}
