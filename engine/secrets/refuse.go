// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"maps"
	"slices"

	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/redact"
	"sandpit.dev/sandbox"
)

// MinRefused is how many bytes a value has at least that no name on record may have in it:
// what is shorter may be any word.
const MinRefused = 8

// Plain is what a caller wants to have on record in plain text, by the fields that it
// came in.
type Plain map[string][]string

// Add adds a map of a field, its names and values.
func (p Plain) Add(field string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	for _, n := range slices.Sorted(maps.Keys(m)) {
		p[field] = append(p[field], n, m[n])
	}
}

// Refuse returns fault.Invalid where the value of a secret of the project, of the sandbox (may
// be empty), or of more is in what a record would keep as it is: unlike an event, which
// can do without, a name must stay what it is.
func (c *Cache) Refuse(ctx context.Context, project string, id sandbox.ID, p Plain, more ...Secret) error {
	get := func() (*Set, error) { return c.Of(ctx, project, id) }
	if id == "" {
		get = func() (*Set, error) { return c.OfProject(ctx, project) }
	}
	set, err := get()
	if err != nil {
		return err
	}
	if len(more) == 0 && set.Labels.Empty() {
		return nil
	}
	known := []*redact.Labels{set.Labels, Labels(more)}
	var k check.Fields
	for _, field := range slices.Sorted(maps.Keys(p)) {
		for _, l := range known {
			if name := l.In(MinRefused, p[field]...); name != "" {
				k.Bad(field, "has the value of the secret %s in it, and is kept in plain text", name)
				break
			}
		}
	}
	if err := k.Err(); err != nil {
		return fault.As(err).WithRemedy("leave it out: commands have the secret as a variable of its name")
	}
	return nil
}
