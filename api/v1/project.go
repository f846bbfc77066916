// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Amounts are so much of each resource of a project: as quotas, the most that it may have.
type Amounts struct {
	Sandboxes      *int64   `json:"sandboxes,omitempty" jsonschema:"in all, in whatever state"`
	Running        *int64   `json:"running,omitempty" jsonschema:"sandboxes that run; paused and stopped ones do not"`
	CPUCores       *float64 `json:"cpu_cores,omitempty" jsonschema:"limits of running sandboxes together"`
	MemoryMB       *int64   `json:"memory_mb,omitempty" jsonschema:"likewise"`
	Processes      *int64   `json:"processes,omitempty" jsonschema:"likewise, and threads"`
	DiskMB         *int64   `json:"disk_mb,omitempty" jsonschema:"limits of sandboxes that are not archived, and sizes of volumes, together"`
	Snapshots      *int64   `json:"snapshots,omitempty" jsonschema:"without checkpoints"`
	Volumes        *int64   `json:"volumes,omitempty"`
	CommandsPerDay *int64   `json:"commands_per_day,omitempty" jsonschema:"commands, cells and terminals since midnight UTC; counted while there is a quota of them"`

	CPUSecondsPerMonth       *int64 `json:"cpu_seconds_per_month,omitempty" jsonschema:"cores that running sandboxes are promised, times how long they run, since the month began, UTC; told while there is a quota of them"`
	MemoryGiBSecondsPerMonth *int64 `json:"memory_gib_seconds_per_month,omitempty" jsonschema:"likewise of memory"`
}

// Project is a project: what it may have, and what it has.
type Project struct {
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by,omitempty" jsonschema:"the token's name; missing where the server made it"`
	Quotas    Amounts   `json:"quotas" jsonschema:"the most of each resource; what is missing has no bound"`
	Used      Amounts   `json:"used"`
	Left      Amounts   `json:"left" jsonschema:"of the resources that have a quota"`
	// CommandsResetAt is when commands_per_day begins anew.
	CommandsResetAt time.Time `json:"commands_reset_at" jsonschema:"when commands_per_day begins anew"`
	BudgetResetAt   time.Time `json:"budget_reset_at" jsonschema:"when what is per month begins anew"`
}

// ProjectList is all projects that the caller may see.
type ProjectList struct {
	Items []Project `json:"items"`
}

// CreateProject asks for a project.
type CreateProject struct {
	Name   string   `json:"name" jsonschema:"1 to 63 lower-case letters, digits and dashes"`
	Quotas *Amounts `json:"quotas,omitempty" jsonschema:"default: the operator's for new projects"`
}

// UpdateProject changes a project.
type UpdateProject struct {
	Quotas *Amounts `json:"quotas,omitempty" jsonschema:"those that are given are changed; 0: no bound. One below what is used refuses more, and ends nothing"`
}
