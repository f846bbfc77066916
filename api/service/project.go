// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/access/project"
	"sandpit.dev/projects"
)

// Projects says what projects may have and have, and changes them. Quotas are given by the resource's name.
type Projects interface {
	// Limits returns the caller's own project.
	Limits(ctx context.Context, c access.Caller) (projects.Status, error)
	Get(ctx context.Context, c access.Caller, name string) (projects.Status, error)
	List(ctx context.Context, c access.Caller) ([]projects.Status, error)
	// Defaults returns the quotas of a project that is made without being given any.
	Defaults() project.Amounts
	Create(ctx context.Context, c access.Caller, name string, quotas map[string]float64) (projects.Status, error)
	Change(ctx context.Context, c access.Caller, name string, quotas map[string]float64) (projects.Status, error)
	Delete(ctx context.Context, c access.Caller, name string) error
}
