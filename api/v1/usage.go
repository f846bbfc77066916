// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// UsageReport is what was used, in rows by what was asked for.
type UsageReport struct {
	Since *time.Time `json:"since" jsonschema:"the beginning of the hour that the sums begin with; null: of all time"`
	Until *time.Time `json:"until" jsonschema:"null: now"`
	By    []string   `json:"by"`
	Items []Usage    `json:"items"`
}

// Usage is one row of what was used. What is promised counts while a sandbox runs, a disk for as long as it is on the host.
type Usage struct {
	Project          *string    `json:"project" jsonschema:"null where rows are not by project"`
	Token            *string    `json:"token" jsonschema:"the name of the token that ran the command, or made the sandbox; null where rows are not by token"`
	Time             *time.Time `json:"time" jsonschema:"the beginning of the day or hour, in UTC; null where rows are by neither"`
	Commands         int64      `json:"commands"`
	CommandSeconds   float64    `json:"command_seconds"`
	RunSeconds       float64    `json:"run_seconds" jsonschema:"of all sandboxes together; a paused one does not run"`
	CPUSeconds       float64    `json:"cpu_seconds" jsonschema:"processors that were promised, times run_seconds"`
	MemoryGiBSeconds float64    `json:"memory_gib_seconds" jsonschema:"memory that was promised, times run_seconds"`
	DiskGiBSeconds   float64    `json:"disk_gib_seconds" jsonschema:"disk that was promised, for as long as the disk was on the host"`
	BytesUploaded    int64      `json:"bytes_uploaded"`
	BytesDownloaded  int64      `json:"bytes_downloaded"`
}
