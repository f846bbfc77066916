// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"strconv"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// readVariables overrides strings and numbers by the variables of these names.
func readVariables(variables map[string]any, getenv func(string) string) error {
	for name, p := range variables {
		v := getenv(name)
		if v == "" {
			continue
		}
		switch p := p.(type) {
		case *string:
			*p = v
		case *int:
			n, err := strconv.Atoi(v)
			if err != nil {
				return fault.InvalidField(name, "%q is not a valid number", sandbox.Clip(v, 20))
			}
			*p = n
		}
	}
	return nil
}
