// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"sandpit.dev/engine/meter"
	"sandpit.dev/engine/overview"
	"sandpit.dev/linux/machine"
)

// hostUse returns what tells what this host uses, and of its disks that of the data directory.
func hostUse(data string) func() (meter.HostUse, error) {
	return func() (meter.HostUse, error) {
		u, err := machine.Read(data)
		return meter.HostUse(u), err
	}
}

// openFiles tells how many files are open.
func openFiles() (overview.Files, error) {
	f, err := machine.ReadFiles()
	return overview.Files(f), err
}
