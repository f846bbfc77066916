// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"sandpit.dev/access/project"
	"sandpit.dev/sandbox"
)

// Projects are the records of projects. Other records name a project without one existing.
type Projects interface {
	Insert(p *project.Project) error // fault.Exists for a taken name
	Get(name string) (*project.Project, error)
	// List returns all, by name.
	List() ([]*project.Project, error)
	// Update replaces Quotas; fault.NotFound if the project does not exist.
	Update(p *project.Project) error
	Delete(name string) error // fault.NotFound if it does not exist
	// Use returns what the records of a project take of each resource ("": of all projects), Commands
	// excepted.
	Use(name string) (project.Amounts, error)
	// Taken returns what the record of a sandbox takes, and of which project; "" for one that does not exist.
	Taken(id sandbox.ID) (name string, a project.Amounts, err error)
	// Contents returns how many records of each kind belong to a project, by the kind's name, those that a
	// project without anything has none of: no events, no runs.
	Contents(name string) (map[string]int, error)
	// AddCommand counts a command of a project on a day, see [project.Day], and returns how many it
	// has had on it. Only one day of a project is kept, the last.
	AddCommand(name string, day int64) (int64, error)
	// Commands returns how many AddCommand counted on a day.
	Commands(name string, day int64) (int64, error)
}
