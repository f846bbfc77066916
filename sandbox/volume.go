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
	ExpiresAt time.Time // from then on it is deleted as soon as no sandbox mounts it; zero: it stays until it is deleted
}

// Lifetime returns how long after its creation a volume expires; zero: it does not.
func (v *Volume) Lifetime() time.Duration {
	if v.ExpiresAt.IsZero() {
		return 0
	}
	return v.ExpiresAt.Sub(v.CreatedAt)
}

// SetLifetime has a volume expire so long after its creation; zero: not at all.
func (v *Volume) SetLifetime(d time.Duration) {
	if v.ExpiresAt = (time.Time{}); d > 0 {
		v.ExpiresAt = v.CreatedAt.Add(d)
	}
}

// MaxVolumeLifetime is the longest lifetime of a volume that has one.
const MaxVolumeLifetime = 3650 * 24 * time.Hour

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
