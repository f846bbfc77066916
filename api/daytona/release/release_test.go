// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package release

import "testing"

func TestVersionsAreToldApart(t *testing.T) {
	for _, c := range []struct {
		version         string
		marked, preview bool
	}{
		{"", false, false},
		{"0.26.1", false, true},
		{"0.27.0", true, true},
		{"v0.108.1", true, true},
		{"0.112.3", true, true},
		{"0.113.0", true, false},
		{"0.166.9", true, false},
		{"0.167.0", false, false},
		{"0.226.1", false, false},
		{"1.0.0", false, false},
		{"0.0.0-dev", false, true},
		{"nonsense", false, false},
		{"0.x", false, false},
	} {
		if MarksOutput(c.version) != c.marked || ToolboxByPreview(c.version) != c.preview {
			t.Errorf("%q: %v, %v", c.version, MarksOutput(c.version), ToolboxByPreview(c.version))
		}
	}
}
