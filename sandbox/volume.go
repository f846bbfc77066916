// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// Volume is a named directory that outlives sandboxes. Several may mount it at
// once; what one writes the others see at once.
type Volume struct {
	ID        ID
	Project   string
	Name      string // unique in its project; the rules are those of a key, see CheckKey
	Runtime   string // whose sandboxes can mount it
	SizeMB    int    // the most that it holds, in MiB; zero: no limit of its own
	State     VolumeState
	CreatedAt time.Time
	CreatedBy string
}

// VolumeState is the state of a volume.
type VolumeState string

const (
	VolumeCreating VolumeState = "creating" // intent; a crash undoes it
	VolumeReady    VolumeState = "ready"
	VolumeDeleting VolumeState = "deleting" // intent; a crash finishes it
)

// Mount is a volume in a sandbox. It is there at each start of the sandbox.
type Mount struct {
	Volume   ID     `json:"volume"`
	Name     string `json:"name"`          // of the volume, as it was when the sandbox was created
	Path     string `json:"path"`          // absolute, inside; made where it is missing
	Sub      string `json:"sub,omitempty"` // a directory in the volume, relative; made where it is missing. Empty: the whole volume
	ReadOnly bool   `json:"read_only,omitempty"`
}

// MaxMounts is how many volumes a sandbox mounts at most.
const MaxMounts = 16
