// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"encoding/json"
	"fmt"
	"strings"

	"sandpit.dev/sandbox"
)

// networkText is the column of a policy: its mode if it has nothing else, as nearly all, else
// JSON.
func networkText(p sandbox.NetworkPolicy) string {
	if p.Equal(sandbox.NetworkPolicy{Mode: p.Mode}) {
		return string(p.Mode)
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic("sqlstore: a policy that is no JSON: " + err.Error()) // its fields are all plain
	}
	return string(b)
}

func parseNetwork(text string) (sandbox.NetworkPolicy, error) {
	if !strings.HasPrefix(text, "{") {
		return sandbox.NetworkPolicy{Mode: sandbox.NetworkMode(text)}, nil
	}
	var p sandbox.NetworkPolicy
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("the network policy %q: %w", sandbox.Clip(text, 100), err)
	}
	return p, nil
}
