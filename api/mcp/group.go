// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"slices"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Groups of tools that a server shows only where it is told to: every tool that
// is listed costs a model attention.
const (
	// GroupState is what changes a sandbox as a whole: pause, restart, snapshots,
	// forks, and what its limits are.
	GroupState = "state"
)

// Groups lists every group.
func Groups() []string { return []string{GroupState} }

// CheckGroups refuses what is no group. The error is about field.
func CheckGroups(field string, groups []string) error {
	for _, g := range groups {
		if !slices.Contains(Groups(), g) {
			return fault.InvalidField(field, "%q is no group of tools", sandbox.Clip(g, 40)).
				WithRemedy("there is %s", strings.Join(Groups(), ", "))
		}
	}
	return nil
}

// stateTools are those of GroupState.
func stateTools() []tool {
	return []tool{
		pauseSandbox(), resumeSandbox(), restartSandbox(),
		snapshotSandbox(), listSnapshots(), deleteSnapshot(),
		rollbackSandbox(), forkSandbox(), diffSandbox(), getSandboxLimits(),
	}
}
