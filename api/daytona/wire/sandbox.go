// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// States of a sandbox. Clients know more, which this server never has.
const (
	StateCreating    = "creating"
	StateRestoring   = "restoring"
	StateDestroyed   = "destroyed"
	StateDestroying  = "destroying"
	StateStarted     = "started"
	StateStopped     = "stopped"
	StateStarting    = "starting"
	StateStopping    = "stopping"
	StateError       = "error"
	StateBuildFailed = "build_failed"
	StatePending     = "pending_build"
	StateBuilding    = "building_snapshot"
	StatePulling     = "pulling_snapshot"
	StateArchived    = "archived"
	StateArchiving   = "archiving"
	StatePausing     = "pausing"
	StatePaused      = "paused"
	StateResuming    = "resuming"
)

// ClassContainer is the only class of sandboxes here.
const ClassContainer = "container"

// LanguageLabel is the label by which clients choose what runs code; they refuse a sandbox without it.
const LanguageLabel = "code-toolbox-language"

// Sandbox is a sandbox with all of its fields. A [ListItem] is one in a list.
type Sandbox struct {
	ListItem
	// Env has values for callers that may write, in direct answers, and is empty else.
	Env map[string]string `json:"env"`
}

// ListItem is a sandbox in a list.
type ListItem struct {
	ID               string            `json:"id"`
	OrganizationID   string            `json:"organizationId"`
	Name             string            `json:"name"`
	Snapshot         string            `json:"snapshot,omitempty"`
	User             string            `json:"user"`
	Labels           map[string]string `json:"labels"`
	Public           bool              `json:"public"`
	NetworkBlockAll  bool              `json:"networkBlockAll"`
	NetworkAllowList string            `json:"networkAllowList,omitempty"` // ranges, separated by commas
	DomainAllowList  string            `json:"domainAllowList,omitempty"`  // names, likewise
	Target           string            `json:"target"`
	CPU              int               `json:"cpu"`    // cores, rounded up
	GPU              int               `json:"gpu"`    // always 0
	Memory           int               `json:"memory"` // GiB, rounded up
	Disk             int               `json:"disk"`   // GiB, rounded up
	State            string            `json:"state"`
	DesiredState     string            `json:"desiredState,omitempty"`
	ErrorReason      string            `json:"errorReason,omitempty"`
	Recoverable      bool              `json:"recoverable"`
	AutoStop         float64           `json:"autoStopInterval"`    // minutes; 0: never
	AutoPause        float64           `json:"autoPauseInterval"`   // likewise
	AutoArchive      float64           `json:"autoArchiveInterval"` // likewise
	AutoDelete       float64           `json:"autoDeleteInterval"`  // likewise, but -1: never, and 0: when it stops
	AutoDestroyAt    *time.Time        `json:"autoDestroyAt,omitempty"`
	Volumes          []Mount           `json:"volumes"`
	CreatedAt        time.Time         `json:"createdAt"`
	UpdatedAt        time.Time         `json:"updatedAt"`
	LastActivityAt   time.Time         `json:"lastActivityAt"`
	Class            string            `json:"sandboxClass"`
	Spot             bool              `json:"spot"`
	KVM              bool              `json:"kvm"`
	ToolboxProxyURL  string            `json:"toolboxProxyUrl"` // to which clients add /ID/…
}

// Mount is a volume in a sandbox.
type Mount struct {
	VolumeID  string `json:"volumeId"`
	MountPath string `json:"mountPath"`
	Subpath   string `json:"subpath,omitempty"`
}

// CreateSandbox is what a new sandbox shall be. Every field may be missing.
type CreateSandbox struct {
	Name             *string             `json:"name"`
	Snapshot         *string             `json:"snapshot"`
	User             *string             `json:"user"`
	Env              map[string]string   `json:"env"`
	Labels           map[string]string   `json:"labels"`
	Public           *bool               `json:"public"`
	NetworkBlockAll  *bool               `json:"networkBlockAll"`
	NetworkAllowList *string             `json:"networkAllowList"`
	DomainAllowList  *string             `json:"domainAllowList"`
	OutboundProxyURL *string             `json:"outboundProxyUrl"`
	Class            *string             `json:"sandboxClass"`
	Target           *string             `json:"target"`
	CPU              *float64            `json:"cpu"`
	GPU              *float64            `json:"gpu"`
	Memory           *float64            `json:"memory"` // GiB
	Disk             *float64            `json:"disk"`   // GiB
	Spot             *bool               `json:"spot"`
	KVM              *bool               `json:"kvm"`
	AutoStop         *float64            `json:"autoStopInterval"` // minutes, as all below
	AutoPause        *float64            `json:"autoPauseInterval"`
	AutoArchive      *float64            `json:"autoArchiveInterval"`
	AutoDelete       *float64            `json:"autoDeleteInterval"`
	TTL              *float64            `json:"ttlMinutes"`
	Volumes          []Mount             `json:"volumes"`
	BuildInfo        *BuildInfo          `json:"buildInfo"`
	LinkedSandbox    *string             `json:"linkedSandbox"`
	OTELEndpoint     *string             `json:"otelEndpointOverride"`
	Secrets          []map[string]string `json:"secrets"` // a variable's name to a secret's
}

// BuildInfo is an image that is to be built.
type BuildInfo struct {
	Dockerfile string   `json:"dockerfileContent"`
	Contexts   []string `json:"contextHashes"`
}

// SandboxPage is a part of the list of sandboxes.
type SandboxPage struct {
	Items      []ListItem `json:"items"`
	NextCursor *string    `json:"nextCursor"` // null: it is the last
}

// NumberedPage is a page of the list that clients before 0.180 read.
type NumberedPage struct {
	Items      []Sandbox `json:"items"`
	Total      int       `json:"total"`
	Page       int       `json:"page"`
	TotalPages int       `json:"totalPages"`
}

// Labels are those of a sandbox.
type Labels struct {
	Labels map[string]string `json:"labels"`
}

// Resize is what a sandbox's limits shall be; nil: as they are.
type Resize struct {
	CPU    *float64 `json:"cpu"`
	Memory *float64 `json:"memory"` // GiB
	Disk   *float64 `json:"disk"`   // GiB
}

// Network is what a sandbox may reach; nil: as it is.
type Network struct {
	BlockAll  *bool   `json:"networkBlockAll"`
	AllowList *string `json:"networkAllowList"`
	Domains   *string `json:"domainAllowList"`
}

// Name is the name of what is made.
type Name struct {
	Name *string `json:"name"`
}

// Address is an address.
type Address struct {
	URL string `json:"url"`
}

// Nothing is the answer to what has no other: an object, since Python's client reads one.
type Nothing struct{}
