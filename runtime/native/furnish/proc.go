// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package furnish

import (
	"os"

	"sandpit.dev/linux/spawn"

	"golang.org/x/sys/unix"
)

// DeadProc makes a detached /proc of a namespace of process ids in which no process is
// or ever will be, by a child of m's.
func DeadProc(m spawn.Method) (*os.File, error) {
	script := spawn.Script{Method: m}
	proc := fresh(&script, "proc", quiet|unix.MOUNT_ATTR_NODEV)
	opened, err := script.RunAlone()
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	return opened.Take(proc, "proc"), nil
}
