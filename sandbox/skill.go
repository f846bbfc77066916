// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// Skills is where skills are installed, each in a directory of its name.
const Skills = Workspace + "/skills"

// MaxSkills is how many skills a sandbox's record has at most.
const MaxSkills = 100

// Skill is a skill that was installed into a sandbox, on the disk that it has.
type Skill struct {
	ID          string // of the project's skill, which may be gone
	Name        string
	Digest      string // of its files as they were installed
	InstalledAt time.Time
}
