// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"sandpit.dev/sandbox"
	"sandpit.dev/template"
)

// Templates are the versions of templates, by project; [template.Server] is the project of those that all have.
type Templates interface {
	// Insert adds a version and sets t.Version to the next one of its project and name, which no version
	// had before, deleted ones included. A taken id is fault.Exists.
	Insert(t *template.Template) error
	Get(id string) (*template.Template, error)
	// Versions returns those of a name, newest first; none is no error.
	Versions(project, name string) ([]*template.Template, error)
	// List returns those of a project, by name, newest first.
	List(project string) ([]*template.Template, error)
	// Building returns those of all projects that are being built.
	Building() ([]*template.Template, error)
	// OfDisk returns those whose disk is a snapshot.
	OfDisk(snapshot sandbox.ID) ([]*template.Template, error)
	// OfImage returns those whose Dockerfile made an image, by its digest.
	OfImage(digest string) ([]*template.Template, error)
	// Finish sets Status, Snapshot, Image and Failure of one that is Building; else it is fault.Conflict.
	Finish(t *template.Template) error
	// SetInactive sets Inactive; fault.NotFound if it does not exist.
	SetInactive(id string, inactive bool) error
	Delete(id string) error // fault.NotFound if it does not exist
	// Default returns the name of a project's default template; empty: none.
	Default(project string) (name string, err error)
	// SetDefault makes a name the default of a project; empty: none is.
	SetDefault(project, name string) error
}

// Pools are the sizes of pools that were changed by call, by the pool's name.
type Pools interface {
	// Put adds what is to hold for a pool, or replaces it.
	Put(p PoolSize) error
	// List returns all, by name.
	List() ([]PoolSize, error)
}

// PoolSize is how large a pool is, where a call said so.
type PoolSize struct {
	Name             string
	Image            string // "": it follows the creates
	Limits           sandbox.Limits
	Template         string // NAME@VERSION that Image and Limits are of; "": none
	Min, Max, Refill int
}
