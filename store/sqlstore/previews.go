// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"encoding/json"
	"fmt"

	"sandpit.dev/sandbox"
)

// previewsText is the column of who may see a sandbox's ports: empty for the zero value, as of nearly all, else JSON.
func previewsText(p sandbox.Previews) string {
	if p.Equal(sandbox.Previews{}) {
		return ""
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic("sqlstore: previews that are no JSON: " + err.Error()) // its fields are all plain
	}
	return string(b)
}

func parsePreviews(text string) (p sandbox.Previews, err error) {
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("the previews %q: %w", sandbox.Clip(text, 100), err)
	}
	return p, nil
}
