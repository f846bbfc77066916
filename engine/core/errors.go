// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// NoSandbox returns the error for a sandbox that is not there.
func NoSandbox(ref string) *fault.Error {
	return fault.New(fault.NotFound, "there is no sandbox %q", sandbox.Clip(ref, 80)).WithReason(sandbox.ReasonNoSandbox).
		WithRemedy("list the sandboxes to see which there are, or create one")
}

// NoDisk returns the error for a sandbox whose disk is gone, as err says.
func NoDisk(id sandbox.ID, err error) error {
	return fault.Wrap(fault.State, err, "the disk of the sandbox %s is gone from this host", id).
		WithRemedy("give it an empty disk (reset), roll it back to a snapshot, or delete it")
}
