// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// States of a snapshot.
const (
	SnapshotBuilding    = "building"
	SnapshotPulling     = "pulling"
	SnapshotActive      = "active"
	SnapshotInactive    = "inactive"
	SnapshotError       = "error"
	SnapshotBuildFailed = "build_failed"
	SnapshotRemoving    = "removing"
)

// Snapshot is what sandboxes are made of.
type Snapshot struct {
	ID              string     `json:"id"`
	OrganizationID  string     `json:"organizationId,omitempty"`
	General         bool       `json:"general"`
	Name            string     `json:"name"`
	ImageName       string     `json:"imageName,omitempty"`
	State           string     `json:"state"`
	Size            *float64   `json:"size"` // GiB; null: it is not known
	Entrypoint      []string   `json:"entrypoint"`
	CPU             float64    `json:"cpu"`
	GPU             int        `json:"gpu"`
	Memory          float64    `json:"mem"`  // GiB
	Disk            float64    `json:"disk"` // GiB
	ErrorReason     *string    `json:"errorReason"`
	CreatedAt       time.Time  `json:"createdAt"`
	UpdatedAt       time.Time  `json:"updatedAt"`
	LastUsedAt      *time.Time `json:"lastUsedAt"` // null: it is not known
	BuildInfo       *Built     `json:"buildInfo,omitempty"`
	RegionIDs       []string   `json:"regionIds"`
	Ref             string     `json:"ref,omitempty"`
	SourceSandboxID *string    `json:"sourceSandboxId"`
	Class           string     `json:"sandboxClass"`
}

// Built is how the image of a snapshot was built.
type Built struct {
	BuildInfo
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`
	SnapshotRef string    `json:"snapshotRef"`
}

// SnapshotPage is a page of snapshots.
type SnapshotPage struct {
	Items      []Snapshot `json:"items"`
	Total      int        `json:"total"`
	Page       int        `json:"page"`
	TotalPages int        `json:"totalPages"`
}

// CreateSnapshot asks for one.
type CreateSnapshot struct {
	Name       string     `json:"name"`
	ImageName  *string    `json:"imageName"`
	BuildInfo  *BuildInfo `json:"buildInfo"`
	Entrypoint []string   `json:"entrypoint"`
	CPU        *float64   `json:"cpu"`
	GPU        *float64   `json:"gpu"`
	Memory     *float64   `json:"memory"` // GiB
	Disk       *float64   `json:"disk"`   // GiB
	RegionID   *string    `json:"regionId"`
	Class      *string    `json:"sandboxClass"`
}

// SnapshotSandbox asks for one of a sandbox.
type SnapshotSandbox struct {
	Name          string `json:"name"`
	IncludeMemory *bool  `json:"includeMemory"`
}

// StorageAccess is how a client sends files for a build.
type StorageAccess struct {
	AccessKey      string `json:"accessKey"`
	Secret         string `json:"secret"`
	SessionToken   string `json:"sessionToken"`
	StorageURL     string `json:"storageUrl"`
	OrganizationID string `json:"organizationId"`
	Bucket         string `json:"bucket"`
	Region         string `json:"region"`
}
