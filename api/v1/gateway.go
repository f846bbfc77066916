// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// UserQuota is what a project may have, in the form of the MCP Gateway, whose users are projects here.
type UserQuota struct {
	UserID          string  `json:"user_id" jsonschema:"the project"`
	MaxSandboxes    int64   `json:"max_sandboxes" jsonschema:"in all; 0: any number"`
	MaxMemoryMB     int64   `json:"max_memory_mb" jsonschema:"of those that run; 0: any"`
	MaxCPUCores     float64 `json:"max_cpu_cores" jsonschema:"of those that run; 0: any"`
	MaxExecPerDay   int64   `json:"max_exec_per_day" jsonschema:"0: any number"`
	IsCustom        bool    `json:"is_custom" jsonschema:"whether any of these is set"`
	ActiveSandboxes int64   `json:"active_sandboxes" jsonschema:"that run"`
}

// UserQuotas are those of all projects that have some.
type UserQuotas struct {
	Quotas           []UserQuota `json:"quotas"`
	PlatformDefaults UserQuota   `json:"platform_defaults" jsonschema:"of projects that are made without any"`
}

// SetUserQuota sets what a project may have, in the form of the MCP Gateway; 0 takes a bound away.
type SetUserQuota struct {
	MaxSandboxes  *int64   `json:"max_sandboxes,omitempty"`
	MaxMemoryMB   *int64   `json:"max_memory_mb,omitempty"`
	MaxCPUCores   *float64 `json:"max_cpu_cores,omitempty"`
	MaxExecPerDay *int64   `json:"max_exec_per_day,omitempty"`
}

// UsageSummary is what projects used, in the form of the MCP Gateway.
type UsageSummary struct {
	Since *time.Time  `json:"since"`
	Until *time.Time  `json:"until"`
	Users []UserUsage `json:"users"`
}

// UserUsage is what a project used.
type UserUsage struct {
	UserID          string `json:"user_id" jsonschema:"the project"`
	ExecCount       int64  `json:"exec_count"`
	ExecTotalMS     int64  `json:"exec_total_ms"`
	BytesUploaded   int64  `json:"bytes_uploaded"`
	BytesDownloaded int64  `json:"bytes_downloaded"`
	SandboxCount    int64  `json:"sandbox_count" jsonschema:"that there are now"`
}

// SandboxImagePool is how many sandboxes of an image run before anybody asks, in the form of the MCP Gateway.
type SandboxImagePool struct {
	ImageID     string `json:"image_id" jsonschema:"the same as image_name: images have no other id"`
	ImageName   string `json:"image_name"`
	WarmPoolMin int    `json:"warm_pool_min" jsonschema:"so many are kept ready, by the pools of this image; 0: none are for it alone"`
	WarmPoolMax int    `json:"warm_pool_max" jsonschema:"so many where more are asked for"`
	IdleCount   int    `json:"idle_count" jsonschema:"that are ready, those of the pool that follows the last creates included"`
	Provider    string `json:"provider" jsonschema:"the runtime"`
}
