// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Volume is a named directory that outlives sandboxes. Several may mount it at
// once; what one writes the others see at once.
type Volume struct {
	ID        string     `json:"id" jsonschema:"the server's name for it, for ever: 16 lower-case letters and digits"`
	Name      string     `json:"name" jsonschema:"unique in the project"`
	Project   string     `json:"project"`
	Runtime   string     `json:"runtime" jsonschema:"whose sandboxes can mount it"`
	Status    string     `json:"status" jsonschema:"creating, ready or deleting"`
	SizeMB    int        `json:"size_mb" jsonschema:"the most that it holds, in MiB; 0: no limit of its own"`
	UsedBytes *int64     `json:"used_bytes" jsonschema:"what it holds; null where the host does not count it"`
	Users     []string   `json:"users" jsonschema:"ids of the sandboxes that mount it"`
	CreatedAt time.Time  `json:"created_at"`
	CreatedBy string     `json:"created_by" jsonschema:"the token's name"`
	Lifetime  *int64     `json:"lifetime_seconds" jsonschema:"how long after its creation it expires; null: it stays until it is deleted"`
	ExpiresAt *time.Time `json:"expires_at" jsonschema:"from then on it is deleted, with all that is in it, as soon as no sandbox mounts it; null: never"`
}

// VolumeList is the volumes of a project, by name.
type VolumeList struct {
	Items []Volume `json:"items"`
}

// CreateVolume asks for an empty volume.
type CreateVolume struct {
	Name    string  `json:"name" jsonschema:"1 to 255 printable characters without a slash, unique in the project"`
	SizeMB  *int    `json:"size_mb,omitempty" jsonschema:"the most that it holds, in MiB, at most 1048576; 0 or left out: no limit of its own"`
	Runtime *string `json:"runtime,omitempty" jsonschema:"whose sandboxes can mount it; see GET /info"`
	// A lifetime is a bound on what a caller forgets: no sandbox loses a volume by it.
	LifetimeSeconds *int64 `json:"lifetime_seconds,omitempty" jsonschema:"it is deleted so long after its creation, or as soon after that as no sandbox mounts it; at most 315360000 (3650 days); 0 or left out: it stays until it is deleted"`
}

// UpdateVolume changes a volume: what is there is changed, the rest stays.
type UpdateVolume struct {
	LifetimeSeconds *int64 `json:"lifetime_seconds,omitempty" jsonschema:"counted from its creation, so that a short one may end it within a minute; 0: it stays until it is deleted"`
}

// Mount is a volume in a sandbox.
type Mount struct {
	Volume   string `json:"volume" jsonschema:"the volume's name"`
	VolumeID string `json:"volume_id"`
	Path     string `json:"path" jsonschema:"absolute, inside the sandbox"`
	SubPath  string `json:"sub_path,omitempty" jsonschema:"the directory of the volume that is mounted; missing: the whole volume"`
	ReadOnly bool   `json:"read_only"`
}

// MountVolume asks for a volume in a sandbox.
type MountVolume struct {
	Volume   string  `json:"volume" jsonschema:"the volume's name or id"`
	Path     string  `json:"path" jsonschema:"absolute, inside the sandbox; made where it is missing"`
	SubPath  *string `json:"sub_path,omitempty" jsonschema:"a directory in the volume, relative; made where it is missing; left out: the whole volume"`
	ReadOnly bool    `json:"read_only,omitempty" jsonschema:"the sandbox cannot write to it"`
}
