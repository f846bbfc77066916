// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Fits refuses a snapshot whose disk is not one of the sandbox's kind: it holds what
// was changed of another image, or another runtime keeps it.
func Fits(s *sandbox.Sandbox, snap *sandbox.Snapshot) error {
	if s.Image != snap.Image || s.ImageDigest != snap.ImageDigest {
		return fault.New(fault.Invalid, "the snapshot %s is of the image %s (%s), and the sandbox %s of %s (%s)",
			snap.ID, snap.Image, snap.ImageDigest, s.Ref(), s.Image, s.ImageDigest).
			WithRemedy("create a sandbox from the snapshot instead")
	}
	if s.Runtime != snap.Runtime {
		return fault.New(fault.Invalid, "the runtime %q keeps the snapshot %s, and the sandbox %s is of %q", snap.Runtime, snap.ID, s.Ref(), s.Runtime).
			WithRemedy("create a sandbox from the snapshot instead")
	}
	return nil
}
