// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// SkillType is the media type of a skill's package: a ZIP archive.
const SkillType = "application/zip"

// Skill is a skill that a project keeps, as agentskills.io describes them.
type Skill struct {
	ID               string      `json:"id" jsonschema:"the server's name for it, for ever: a UUID"`
	Name             string      `json:"name" jsonschema:"unique in the project; accepted wherever an id is"`
	Description      string      `json:"description" jsonschema:"what it does and when to use it"`
	Author           string      `json:"author,omitempty"`
	Version          string      `json:"version,omitempty"`
	License          string      `json:"license,omitempty"`
	Compatibility    string      `json:"compatibility,omitempty" jsonschema:"what it needs"`
	Tags             []string    `json:"tags"`
	AllowedTools     []string    `json:"allowed_tools" jsonschema:"the tools that its author has it limited to"`
	SourceType       string      `json:"source_type" jsonschema:"imported: of a package; manual: of text"`
	Digest           string      `json:"digest" jsonschema:"a hash of its files"`
	PackageSizeBytes int64       `json:"package_size_bytes"`
	Files            []SkillFile `json:"files"`
	SkillMDContent   *string     `json:"skill_md_content,omitempty" jsonschema:"the text of its SKILL.md, where the answer is about one skill"`
	Project          string      `json:"project"`
	CreatedAt        time.Time   `json:"created_at"`
	UpdatedAt        time.Time   `json:"updated_at"`
	CreatedBy        string      `json:"created_by" jsonschema:"the token's name"`
}

// SkillFile is a file of a skill.
type SkillFile struct {
	Path      string `json:"path" jsonschema:"below the skill's directory"`
	SizeBytes int64  `json:"size_bytes"`
}

// SkillList is the skills of a project, by name.
type SkillList struct {
	Items []Skill `json:"items"`
	Total int     `json:"total"`
}

// CreateSkill makes a skill of text, without other files.
type CreateSkill struct {
	Name           *string `json:"name,omitempty" jsonschema:"1 to 64 lower-case letters, digits and hyphens; needed where the text has no front matter"`
	Description    *string `json:"description,omitempty" jsonschema:"at most 1024 characters: what it does and when to use it; needed where the text has no front matter"`
	SkillMDContent string  `json:"skill_md_content" jsonschema:"the text of SKILL.md, with its front matter or without; at most 256 KiB"`
}

// InstallSkills asks for skills in a sandbox.
type InstallSkills struct {
	SkillIDs []string `json:"skill_ids" jsonschema:"ids of skills, or names, at most 50"`
}

// SkillsInstalled says what became of skills that were to be installed.
type SkillsInstalled struct {
	Installed        []string            `json:"installed" jsonschema:"names of those that are there now"`
	AlreadyInstalled []string            `json:"already_installed" jsonschema:"names of those that were there as they are"`
	NotFound         []string            `json:"not_found" jsonschema:"those that the project does not have, as they were asked for"`
	ExtractionErrors []SkillNotInstalled `json:"extraction_errors" jsonschema:"those that could not be installed"`
}

// SkillNotInstalled is a skill that could not be installed.
type SkillNotInstalled struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Error string `json:"error" jsonschema:"why, for people"`
}

// InstalledSkill is a skill that is installed in a sandbox.
type InstalledSkill struct {
	ID          string    `json:"id" jsonschema:"of the project's skill, which may be gone"`
	Name        string    `json:"name" jsonschema:"it is in /workspace/skills/ and this"`
	Digest      string    `json:"digest" jsonschema:"of its files as they were installed"`
	InstalledAt time.Time `json:"installed_at"`
}
