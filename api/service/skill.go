// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/skills"
	"sandpit.dev/sandbox"
	"sandpit.dev/skill"
)

// Skills keeps a project's skills and installs them into sandboxes. A skill is named by its id or its name.
type Skills interface {
	AddSkill(ctx context.Context, c access.Caller, data []byte, from skill.Source) (k *skill.Skill, added bool, err error)
	ListSkills(ctx context.Context, c access.Caller, search string) ([]*skill.Skill, error)
	Skill(ctx context.Context, c access.Caller, ref string) (*skill.Skill, error)
	// SkillPackage returns a skill with its package, a ZIP archive.
	SkillPackage(ctx context.Context, c access.Caller, ref string) (*skill.Skill, []byte, error)
	ReplaceSkill(ctx context.Context, c access.Caller, ref string, data []byte, from skill.Source) (*skill.Skill, error)
	DeleteSkill(ctx context.Context, c access.Caller, ref string) error
	// CheckSkills returns fault.Invalid unless the project has all of refs.
	CheckSkills(ctx context.Context, c access.Caller, refs []string) error
	InstallSkills(ctx context.Context, c access.Caller, ref string, refs []string) (*skills.Installed, error)
	// EquipSandbox installs all of refs into a sandbox that Create returned, or deletes it if it is new and has no key.
	EquipSandbox(ctx context.Context, c access.Caller, s *sandbox.Sandbox, created bool, refs []string) (*sandbox.Sandbox, error)
}
