// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

// SandboxImage is an image as the catalogue of the MCP Gateway lists it.
type SandboxImage struct {
	ID          string `json:"id" jsonschema:"its name, for the routes of images"`
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
	Description string `json:"description"`
	Status      string `json:"status" jsonschema:"missing, building, ready or failed"`
	Template    string `json:"template" jsonschema:"the entry of the catalogue that it is built of; empty for one that others made"`
	IsDefault   bool   `json:"is_default" jsonschema:"whether a sandbox that names no image gets it"`
	SizeBytes   int64  `json:"size_bytes"`
}

// SandboxImageList is what there is, built or not.
type SandboxImageList struct {
	Items []SandboxImage `json:"items"`
}

// SandboxImageTemplate is an entry of the catalogue: what an image is built of.
type SandboxImageTemplate struct {
	Name         string   `json:"name"`
	DisplayName  string   `json:"display_name"`
	Description  string   `json:"description"`
	BaseImage    string   `json:"base_image" jsonschema:"the entry that it is made of; empty for a system of its own"`
	Packages     []string `json:"packages" jsonschema:"what it adds by name"`
	PackageCount int      `json:"package_count"`
	Imported     bool     `json:"imported" jsonschema:"whether it is built here"`
}

// SandboxImageTemplateList is the catalogue.
type SandboxImageTemplateList struct {
	Templates []SandboxImageTemplate `json:"templates"`
}

// SandboxImagePackages is the packages of all entries by the tool that installs them: apt, npm or pip.
type SandboxImagePackages struct {
	Categories map[string][]string `json:"categories"`
}
