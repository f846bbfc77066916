// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"time"

	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var _ runtime.Persister = (*Driver)(nil)

// Persist brings the disks that were made so far to the host's disk. Call it before their
// records are flushed; after Close it has nothing to do.
func (d *Driver) Persist() error { return d.layers.Persist() }

// Pending reports whether Persist has something to write.
func (d *Driver) Pending() bool { return d.layers.Pending() }

// MarkRecorded notes that the record of everything made before at is on the host's disk.
func (d *Driver) MarkRecorded(at time.Time) error { return d.layers.MarkRecorded(at) }

// Unrecorded reports whether a crash of the host can have taken the record. See [runtime.Persister].
// What runs was in no crash: records that do not mention it are older.
func (d *Driver) Unrecorded(id sandbox.ID) (bool, error) {
	if (&warden{boot: d.boot, files: d.instances.Root}).up(id) {
		return false, nil
	}
	return d.layers.Unrecorded(string(id))
}
