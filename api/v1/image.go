// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Image is one entry of the catalogue and its state on this server.
type Image struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Aliases     []string          `json:"aliases" jsonschema:"other names that mean it"`
	AliasNotes  map[string]string `json:"alias_notes,omitempty" jsonschema:"of those of them that say something else than what is inside: what is there"`
	Default     bool              `json:"default" jsonschema:"whether a sandbox that names no image gets it"`
	Allowed     bool              `json:"allowed" jsonschema:"whether the operator lets new sandboxes have it"`
	Status      string            `json:"status" jsonschema:"missing, building, ready or failed"`
	Digest      string            `json:"digest,omitempty"`
	Versions    map[string]string `json:"versions" jsonschema:"what is really inside"`
	SizeBytes   int64             `json:"size_bytes"`
	BuiltAt     *time.Time        `json:"built_at"`
	Phase       string            `json:"phase,omitempty" jsonschema:"what a build is doing"`
	Text        string            `json:"text,omitempty" jsonschema:"the same in a line for people"`
	Progress    *float64          `json:"progress,omitempty" jsonschema:"how far a build is, 0 to 1"`
	Error       string            `json:"error,omitempty" jsonschema:"why the last build failed"`
	Output      []string          `json:"output,omitempty" jsonschema:"the last lines of the step that failed"`
}

// ImageList is the catalogue.
type ImageList struct {
	Items []Image `json:"items"`
}
