// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

// BulkSandboxes selects sandboxes of all projects: by ids, or by the other fields, all of which have to hold.
type BulkSandboxes struct {
	SandboxIDs    []string          `json:"sandbox_ids,omitempty" jsonschema:"at most 1000; nothing else but dry_run may be given with them"`
	All           bool              `json:"all,omitempty" jsonschema:"select all that the fields below leave; needed where none of them is given"`
	Project       *string           `json:"project,omitempty"`
	UserID        *string           `json:"user_id,omitempty" jsonschema:"the same as project"`
	Status        []string          `json:"status,omitempty" jsonschema:"any of these states"`
	ExcludeStatus []string          `json:"exclude_status,omitempty" jsonschema:"none of these states"`
	Image         *string           `json:"image,omitempty" jsonschema:"a part of the image's name"`
	Search        *string           `json:"search,omitempty" jsonschema:"a part of the id, key or image, letter case ignored"`
	Metadata      map[string]string `json:"metadata,omitempty" jsonschema:"all of these labels"`
	DryRun        bool              `json:"dry_run,omitempty" jsonschema:"do nothing, and tell what would be done"`
}

// BulkResult is what became of each sandbox that was selected, by its id.
type BulkResult struct {
	Stopped   []string    `json:"stopped"`
	Destroyed []string    `json:"destroyed"`
	Skipped   []string    `json:"skipped" jsonschema:"there was nothing to do"`
	Errors    []BulkError `json:"errors"`
	DryRun    bool        `json:"dry_run"`
}

// BulkError is a sandbox that the work failed for.
type BulkError struct {
	SandboxID string `json:"sandbox_id"`
	Code      string `json:"code"`
	Error     string `json:"error"`
}
