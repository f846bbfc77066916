// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Sandbox is one sandbox as its owner sees it.
type Sandbox struct {
	ID         string            `json:"id" jsonschema:"the server's name for it, for ever: 16 lower-case letters and digits"`
	Key        *string           `json:"key" jsonschema:"the caller's own name for it, accepted wherever an id is"`
	SessionKey *string           `json:"session_key" jsonschema:"the same as key"`
	Project    string            `json:"project" jsonschema:"the project that owns it"`
	Status     string            `json:"status" jsonschema:"creating, running, stopping, stopped, starting or deleting"`
	StopCause  string            `json:"stop_cause,omitempty" jsonschema:"why it is stopped: user, idle, ttl, host or oom"`
	StopDetail string            `json:"stop_detail,omitempty" jsonschema:"the evidence for stop_cause, for people"`
	Image      string            `json:"image" jsonschema:"the image's own name"`
	AskedImage string            `json:"requested_image" jsonschema:"the image or template as it was asked for"`
	Digest     string            `json:"image_digest" jsonschema:"the build of the image that it runs on for ever"`
	Versions   map[string]string `json:"image_versions,omitempty" jsonschema:"what is really inside the image, where the answer is about one sandbox"`
	Runtime    string            `json:"runtime" jsonschema:"what isolates it"`
	Workspace  string            `json:"workspace_path" jsonschema:"where commands start and relative paths begin"`

	CPUCores float64 `json:"cpu_cores" jsonschema:"CPU cores that its commands may use together"`
	MemoryMB int     `json:"memory_mb" jsonschema:"memory in MiB, without swap"`
	DiskMB   int     `json:"disk_mb" jsonschema:"disk in MiB, root changes and workspace together"`
	Pids     int     `json:"pids" jsonschema:"processes and threads"`

	Network        string            `json:"network" jsonschema:"off: loopback and nothing else"`
	NetworkEnabled bool              `json:"network_enabled" jsonschema:"whether network is anything but off"`
	EnvNames       []string          `json:"env_names" jsonschema:"names of the variables that its commands get; values are never shown"`
	Metadata       map[string]string `json:"metadata" jsonschema:"the caller's own labels"`

	IdleTimeoutSeconds int64      `json:"idle_timeout_seconds" jsonschema:"idle this long and it is stopped; 0: never"`
	RetentionSeconds   int64      `json:"retention_seconds" jsonschema:"stopped this long and it is deleted; 0: never"`
	ExpiresAt          *time.Time `json:"expires_at" jsonschema:"deleted then, whatever it does; null: never"`

	CreatedAt      time.Time  `json:"created_at"`
	UpdatedAt      time.Time  `json:"updated_at"`
	StartedAt      *time.Time `json:"started_at" jsonschema:"the last start"`
	LastActivityAt *time.Time `json:"last_activity_at" jsonschema:"the last call that counts as activity"`
	StoppedAt      *time.Time `json:"stopped_at" jsonschema:"null while it runs"`

	ExecCount       int64 `json:"exec_count" jsonschema:"commands run so far"`
	ExecTotalMS     int64 `json:"exec_total_ms" jsonschema:"milliseconds that they took together"`
	BytesUploaded   int64 `json:"bytes_uploaded"`
	BytesDownloaded int64 `json:"bytes_downloaded"`
}

// Ref is how to name the sandbox in a call: its key if it has one, else its id.
func (s *Sandbox) Ref() string {
	if s.Key != nil && *s.Key != "" {
		return *s.Key
	}
	return s.ID
}

// CreateSandbox asks for a sandbox. Every field is optional.
type CreateSandbox struct {
	Key        *string `json:"key,omitempty" jsonschema:"the caller's own name: 1 to 255 printable characters without a slash, unique in the project; if it exists, that sandbox is the answer (200)"`
	SessionKey *string `json:"session_key,omitempty" jsonschema:"the same as key"`
	Image      *string `json:"image,omitempty" jsonschema:"what to run on; see GET /images"`
	Template   *string `json:"template,omitempty" jsonschema:"the same as image"`
	Runtime    *string `json:"runtime,omitempty" jsonschema:"what isolates it; see GET /info"`

	Size     *string  `json:"size,omitempty" jsonschema:"small (1 core, 512 MiB), medium (2 cores, 2048 MiB) or large (4 cores, 8192 MiB)"`
	CPUCores *float64 `json:"cpu_cores,omitempty" jsonschema:"CPU cores, 0.05 to 64"`
	CPU      *float64 `json:"cpu,omitempty" jsonschema:"the same as cpu_cores"`
	MemoryMB *int     `json:"memory_mb,omitempty" jsonschema:"memory in MiB, 16 to 1048576"`
	DiskMB   *int     `json:"disk_mb,omitempty" jsonschema:"disk in MiB, 16 to 1048576"`
	Pids     *int     `json:"pids,omitempty" jsonschema:"processes and threads, 8 to 32768"`

	Env            map[string]string `json:"env,omitzero" jsonschema:"environment variables of every command"`
	EnvVars        map[string]string `json:"env_vars,omitzero" jsonschema:"the same as env"`
	Metadata       map[string]string `json:"metadata,omitzero" jsonschema:"labels to find it by"`
	Network        *string           `json:"network,omitempty" jsonschema:"off; restricted and open are refused as unsupported"`
	NetworkEnabled *bool             `json:"network_enabled,omitempty" jsonschema:"false; true is refused as unsupported"`
	Region         *string           `json:"region,omitempty" jsonschema:"null: this server is one machine"`

	IdleTimeoutSeconds *int64 `json:"idle_timeout_seconds,omitempty" jsonschema:"idle this long and it is stopped; 0: never; at most 31622400"`
	RetentionSeconds   *int64 `json:"retention_seconds,omitempty" jsonschema:"stopped this long and it is deleted; 0: never; at most 31622400"`
	TimeoutSeconds     *int64 `json:"timeout_seconds,omitempty" jsonschema:"deleted this long after its creation, whatever it does: 10 to 31622400"`
	TTLSeconds         *int64 `json:"ttl_seconds,omitempty" jsonschema:"the same as timeout_seconds"`
}

// UpdateSandbox changes a sandbox: what is there is changed, the rest stays.
type UpdateSandbox struct {
	Env      map[string]string `json:"env,omitzero" jsonschema:"replaces all variables; the sandbox must be stopped"`
	EnvVars  map[string]string `json:"env_vars,omitzero" jsonschema:"the same as env"`
	Metadata map[string]string `json:"metadata,omitzero" jsonschema:"replaces all labels"`

	CPUCores *float64 `json:"cpu_cores,omitempty" jsonschema:"CPU cores, 0.05 to 64; the sandbox must be stopped"`
	CPU      *float64 `json:"cpu,omitempty" jsonschema:"the same as cpu_cores"`
	MemoryMB *int     `json:"memory_mb,omitempty" jsonschema:"memory in MiB, 16 to 1048576; the sandbox must be stopped"`
	Pids     *int     `json:"pids,omitempty" jsonschema:"processes and threads, 8 to 32768; the sandbox must be stopped"`
	DiskMB   *int     `json:"disk_mb,omitempty" jsonschema:"cannot be changed; refused unless it is the size that the sandbox has"`

	Network        *string `json:"network,omitempty" jsonschema:"off; restricted and open are refused as unsupported"`
	NetworkEnabled *bool   `json:"network_enabled,omitempty" jsonschema:"false; true is refused as unsupported"`

	IdleTimeoutSeconds *int64 `json:"idle_timeout_seconds,omitempty" jsonschema:"idle this long and it is stopped; 0: never; at most 31622400"`
	RetentionSeconds   *int64 `json:"retention_seconds,omitempty" jsonschema:"stopped this long and it is deleted; 0: never; at most 31622400"`
	TimeoutSeconds     *int64 `json:"timeout_seconds,omitempty" jsonschema:"deleted this long from now: 10 to 31622400; 0: never"`
	TTLSeconds         *int64 `json:"ttl_seconds,omitempty" jsonschema:"the same as timeout_seconds"`
}

// SandboxPage is one page of a listing, newest first unless asked otherwise.
type SandboxPage struct {
	Items        []Sandbox      `json:"items"`
	Total        int            `json:"total" jsonschema:"how many match on all pages"`
	Page         *int           `json:"page" jsonschema:"the number of this page from 1; null where a cursor was given"`
	PageSize     int            `json:"page_size" jsonschema:"the most that a page holds"`
	StatusCounts map[string]int `json:"status_counts" jsonschema:"how many match by status"`
	NextCursor   *string        `json:"next_cursor" jsonschema:"give it as cursor to go on; null at the end"`
}
