// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"slices"

	"sandpit.dev/engine/check"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/fault"
	"sandpit.dev/redact"
	"sandpit.dev/sandbox"
)

// minRefused is how many bytes a value has at least that no name on record may have in it:
// what is shorter may be any word.
const minRefused = 8

// onRecord is what a caller wants to have on record in plain text, by the fields that it
// came in.
type onRecord map[string][]string

func (o onRecord) labels(field string, m map[string]string) {
	for _, n := range slices.Sorted(maps.Keys(m)) {
		o[field] = append(o[field], n, m[n])
	}
}

// refuseValues is fault.Invalid where the value of a secret of the project, of the sandbox (may
// be empty), or of more is in what a record would keep as it is: unlike an event, which
// can do without, a name must stay what it is.
func (e *Engine) refuseValues(ctx context.Context, project string, id sandbox.ID, o onRecord, more ...secrets.Secret) error {
	get := func() (*secrets.Set, error) { return e.secrets.Of(ctx, project, id) }
	if id == "" {
		get = func() (*secrets.Set, error) { return e.secrets.OfProject(ctx, project) }
	}
	set, err := get()
	if err != nil {
		return err
	}
	known := []*redact.Labels{set.Labels, secrets.Labels(more)}
	var k check.Fields
	for _, field := range slices.Sorted(maps.Keys(o)) {
		for _, l := range known {
			if name := l.In(minRefused, o[field]...); name != "" {
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
