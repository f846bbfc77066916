// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package skill reads, checks and writes skills: directories with a SKILL.md that tells an agent how
// something is done, as agentskills.io describes them. A skill comes as a ZIP archive (.zip, .skill) or
// as the text of its SKILL.md alone. Of what comes nothing is trusted: it is bounded before it is read,
// and no name in it leads out of the skill's own directory.
//
// It knows nothing of sandboxes, of projects, or of where skills are kept.
package skill
