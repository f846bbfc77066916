// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import "sandpit.dev/skill"

// Skills are the skills that projects keep, with their packages.
type Skills interface {
	// Insert adds a record and its package. A taken id, or a name that its project has already,
	// is fault.Exists.
	Insert(s *skill.Skill, pkg []byte) error
	Get(id string) (*skill.Skill, error)
	ByName(project, name string) (*skill.Skill, error)
	// List returns the skills of a project by name, without their Text.
	List(project string) ([]*skill.Skill, error)
	// Package returns the package of a skill; fault.NotFound if there is no such skill.
	Package(id string) ([]byte, error)
	// Replace replaces all but ID, Project, Name, CreatedAt and CreatedBy, and the package;
	// fault.NotFound if the skill does not exist.
	Replace(s *skill.Skill, pkg []byte) error
	Delete(id string) error // fault.NotFound if it does not exist
	// Usage returns how many skills a project has, and the bytes of their packages together.
	Usage(project string) (n int, bytes int64, err error)
}
